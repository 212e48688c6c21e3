//! How good the contract was at bugs that its makers had not seen, and at correct code.
//!
//! A set is written by authors who know the tasks, and neither the contract nor its museum, in dfdx, as learners
//! write. It is graded once while it is new: these are the numbers here. What it showed is then fixed, and the set is
//! kept as a test: `course/tests/unseen`. A set's number therefore does not change. A new number needs a new set.

/// What came out when a set was new.
#[derive(Debug, Clone, Copy)]
pub struct Measured {
    /// Its folder.
    pub set: &'static str,
    /// Its bugs, by component.
    pub bugs: &'static [Bugs],
    /// Its bugs by what they are about: category, caught, and how many of these the report said it of.
    pub categories: &'static [(&'static str, usize, usize)],
    /// Correct code: component, how many, how many of it were refused.
    pub variants: &'static [(&'static str, usize, usize)],
}

/// Bugs of one component.
#[derive(Debug, Clone, Copy)]
pub struct Bugs {
    /// The component.
    pub component: &'static str,
    /// How many.
    pub asked: usize,
    /// How many some task refused.
    pub caught: usize,
    /// Of these, how many the first red task was the one that holds the bug.
    pub in_its_task: usize,
}

/// The sets, in their order.
pub static MEASURED: &[Measured] = &[
    Measured {
        set: "first",
        bugs: &[
            bugs("norm", 29, 24, 24),
            bugs("embedding", 23, 18, 18),
            bugs("parallel", 26, 22, 22),
            bugs("rope", 34, 30, 28),
            bugs("layernorm", 18, 17, 17),
        ],
        categories: &[],
        variants: &[
            ("norm", 12, 0),
            ("embedding", 8, 0),
            ("parallel", 9, 0),
            ("rope", 12, 0),
            ("layernorm", 7, 0),
        ],
    },
    Measured {
        set: "second",
        bugs: &[
            bugs("norm", 59, 57, 57),
            bugs("embedding", 61, 57, 57),
            bugs("parallel", 58, 55, 55),
            bugs("rope", 72, 68, 68),
            bugs("layernorm", 40, 35, 35),
        ],
        categories: &[
            ("eps", 12, 9),
            ("extent", 26, 16),
            ("frequencies", 9, 9),
            ("gradient", 41, 31),
            ("lookup", 2, 2),
            ("mask", 8, 4),
            ("offset", 6, 4),
            ("order", 21, 9),
            ("precision", 16, 15),
            ("range", 6, 3),
            ("refusal", 35, 30),
            ("rotation", 6, 5),
            ("seed", 34, 34),
            ("special", 11, 11),
            ("state", 12, 7),
            ("statistics", 15, 15),
            ("weights", 11, 7),
        ],
        variants: &[
            ("norm", 20, 1),
            ("embedding", 19, 0),
            ("parallel", 17, 0),
            ("rope", 31, 0),
            ("layernorm", 16, 4),
        ],
    },
    Measured {
        set: "third",
        bugs: &[
            bugs("norm", 28, 26, 26),
            bugs("embedding", 24, 23, 23),
            bugs("parallel", 26, 26, 26),
            bugs("rope", 36, 34, 34),
            bugs("layernorm", 14, 14, 14),
        ],
        categories: &[
            ("eps", 5, 5),
            ("extent", 9, 7),
            ("frequencies", 4, 4),
            ("gradient", 16, 14),
            ("lookup", 1, 0),
            ("mask", 4, 3),
            ("offset", 2, 2),
            ("order", 15, 9),
            ("precision", 7, 5),
            ("range", 5, 3),
            ("refusal", 14, 14),
            ("rotation", 4, 2),
            ("seed", 15, 15),
            ("special", 7, 7),
            ("state", 3, 3),
            ("statistics", 7, 5),
            ("weights", 5, 5),
        ],
        variants: &[
            ("norm", 12, 0),
            ("embedding", 8, 0),
            ("parallel", 12, 0),
            ("rope", 16, 1),
            ("layernorm", 6, 0),
        ],
    },
    Measured {
        set: "fourth",
        bugs: &[
            bugs("norm", 57, 53, 53),
            bugs("embedding", 63, 62, 62),
            bugs("parallel", 43, 42, 42),
            bugs("rope", 81, 76, 76),
            bugs("layernorm", 29, 28, 28),
        ],
        categories: &[
            ("eps", 9, 8),
            ("extent", 12, 5),
            ("frequencies", 16, 14),
            ("gradient", 35, 29),
            ("lookup", 5, 4),
            ("mask", 6, 2),
            ("offset", 8, 4),
            ("order", 22, 18),
            ("precision", 18, 16),
            ("range", 10, 5),
            ("refusal", 35, 34),
            ("rotation", 6, 6),
            ("seed", 29, 29),
            ("special", 16, 13),
            ("state", 8, 6),
            ("statistics", 19, 17),
            ("weights", 7, 5),
        ],
        variants: &[
            ("norm", 22, 1),
            ("embedding", 15, 0),
            ("parallel", 13, 0),
            ("rope", 32, 0),
            ("layernorm", 10, 0),
        ],
    },
    Measured {
        set: "fifth",
        bugs: &[
            bugs("norm", 39, 38, 38),
            bugs("embedding", 38, 38, 38),
            bugs("parallel", 35, 35, 35),
            bugs("rope", 73, 69, 69),
            bugs("layernorm", 30, 30, 30),
        ],
        categories: &[
            ("eps", 10, 10),
            ("extent", 7, 3),
            ("frequencies", 12, 12),
            ("gradient", 37, 31),
            ("lookup", 5, 4),
            ("mask", 5, 5),
            ("offset", 5, 4),
            ("order", 22, 19),
            ("precision", 13, 10),
            ("range", 3, 3),
            ("refusal", 24, 24),
            ("rotation", 7, 6),
            ("seed", 26, 26),
            ("special", 13, 11),
            ("state", 7, 7),
            ("statistics", 10, 10),
            ("weights", 4, 4),
        ],
        variants: &[
            ("norm", 14, 0),
            ("embedding", 13, 0),
            ("parallel", 13, 0),
            ("rope", 16, 0),
            ("layernorm", 12, 0),
        ],
    },
    Measured {
        set: "sixth",
        bugs: &[
            bugs("attention", 35, 30, 27),
            bugs("feedforward", 17, 17, 17),
            bugs("loss", 21, 19, 19),
            bugs("model", 32, 22, 15),
        ],
        categories: &[],
        variants: &[("attention", 10, 0), ("feedforward", 6, 0), ("loss", 6, 0), ("model", 5, 0)],
    },
    Measured {
        set: "seventh",
        bugs: &[
            bugs("absolute", 38, 38, 38),
            bugs("biases", 53, 51, 51),
            bugs("frequencies", 44, 41, 41),
            bugs("rotations", 28, 26, 26),
        ],
        categories: &[],
        variants: &[
            ("absolute", 9, 1),
            ("biases", 12, 0),
            ("frequencies", 16, 0),
            ("rotations", 8, 0),
        ],
    },
    Measured {
        set: "eighth",
        bugs: &[bugs("collectives", 36, 31, 31)],
        categories: &[],
        variants: &[("collectives", 12, 0)],
    },
    Measured {
        set: "ninth",
        bugs: &[
            bugs("norm", 31, 29, 29),
            bugs("embedding", 39, 36, 36),
            bugs("rope", 68, 64, 64),
            bugs("layernorm", 28, 26, 26),
            bugs("parallel", 33, 32, 32),
            bugs("feedforward", 30, 28, 28),
            bugs("attention", 59, 59, 59),
            bugs("loss", 27, 26, 26),
            bugs("absolute", 38, 38, 38),
            bugs("model", 55, 54, 54),
            bugs("frequencies", 61, 59, 59),
            bugs("biases", 56, 54, 54),
            bugs("collectives", 38, 38, 38),
            bugs("rotations", 51, 50, 50),
        ],
        categories: &[],
        variants: &[
            ("norm", 6, 0),
            ("embedding", 5, 0),
            ("rope", 10, 0),
            ("layernorm", 4, 0),
            ("parallel", 5, 0),
            ("feedforward", 5, 0),
            ("attention", 7, 0),
            ("loss", 5, 0),
            ("absolute", 5, 0),
            ("model", 6, 0),
            ("frequencies", 8, 0),
            ("biases", 6, 0),
            ("collectives", 5, 0),
            ("rotations", 5, 0),
        ],
    },
];

const fn bugs(component: &'static str, asked: usize, caught: usize, in_its_task: usize) -> Bugs {
    Bugs { component, asked, caught, in_its_task }
}

/// Something that was counted: how many of how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// How many.
    pub count: usize,
    /// Of how many.
    pub of: usize,
}

impl Measured {
    /// Bugs that were caught.
    pub fn caught(&self) -> Share {
        self.share(|bugs| (bugs.caught, bugs.asked))
    }

    /// Of the caught bugs, those whose own task was the first red one.
    pub fn in_their_task(&self) -> Share {
        self.share(|bugs| (bugs.in_its_task, bugs.caught))
    }

    fn share(&self, of: impl Fn(&Bugs) -> (usize, usize)) -> Share {
        self.bugs.iter().map(of).map(Share::from).sum()
    }

    /// Of the caught bugs, those of which the report said what they are about. None if it was not asked.
    pub fn told(&self) -> Option<Share> {
        let told =
            self.categories.iter().map(|(_, caught, told)| Share { count: *told, of: *caught });
        (!self.categories.is_empty()).then(|| told.sum())
    }

    /// Correct code that was refused.
    pub fn refused(&self) -> Share {
        self.variants.iter().map(|(_, asked, refused)| Share { count: *refused, of: *asked }).sum()
    }
}

impl From<(usize, usize)> for Share {
    fn from((count, of): (usize, usize)) -> Self {
        Self { count, of }
    }
}

impl std::iter::Sum for Share {
    fn sum<I: Iterator<Item = Self>>(shares: I) -> Self {
        shares.fold(Self { count: 0, of: 0 }, |sum, share| Self {
            count: sum.count + share.count,
            of: sum.of + share.of,
        })
    }
}

impl Share {
    /// In percent.
    pub fn percent(self) -> f64 {
        100.0 * self.count as f64 / self.of as f64
    }

    /// Where the share of all such cases lies, in percent: Wilson's interval for 95 % (Wilson 1927).
    pub fn interval(self) -> (f64, f64) {
        let z = 1.959_964; // 97.5 % of a normal distribution are below
        let (n, p) = (self.of as f64, self.count as f64 / self.of as f64);
        let middle = p + z * z / (2.0 * n);
        let half = z * (p * (1.0 - p) / n + z * z / (4.0 * n * n)).sqrt();
        let by = 1.0 + z * z / n;
        (100.0 * (middle - half) / by, 100.0 * (middle + half) / by)
    }
}

/// `111 of 130, 85.4 % (78.3 to 90.4)`: the share, and its interval.
impl std::fmt::Display for Share {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (low, high) = self.interval();
        let (Self { count, of }, percent) = (self, self.percent());
        write!(f, "{count} of {of}, {percent:.1} % ({:.1} to {:.1})", low.max(0.0), high.min(100.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of Brown, Cai and DasGupta 2001 would do as well: 0 of 10 is known to be 0 to 27.75 %.
    #[test]
    fn intervals() {
        let shown = |count, of| Share { count, of }.to_string();
        assert_eq!(shown(0, 10), "0 of 10, 0.0 % (0.0 to 27.8)");
        assert_eq!(shown(5, 10), "5 of 10, 50.0 % (23.7 to 76.3)");
        assert_eq!(shown(10, 10), "10 of 10, 100.0 % (72.2 to 100.0)");
    }

    #[test]
    fn nothing_is_counted_twice() {
        for measured in MEASURED {
            let (caught, own) = (measured.caught(), measured.in_their_task());
            assert!(own.count <= own.of && own.of == caught.count && caught.count <= caught.of);
            assert!(measured.told().is_none_or(|told| told.of <= caught.count));
        }
    }
}
