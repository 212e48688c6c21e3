//! How the random inputs of a check are drawn, and shrunk when one breaks it.

use crate::violation::{Fault, Step, Violation};
use proptest::strategy::{BoxedStrategy, Strategy};
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestError, TestRunner};
use quickcheck::{Arbitrary, Gen};
use std::fmt::{Debug, Display};

/// How to run a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// Seed of the random inputs.
    pub seed: u64,
    /// Random inputs per property.
    pub cases: u32,
    /// Whether to look for a smaller input that breaks the property.
    pub shrink: bool,
    /// Whether the graded cases have every size, or a few.
    pub every_size: bool,
    /// Whether the graded cases have batches of more tokens than a block of code made for speed.
    pub blocks: bool,
}

impl Default for Run {
    fn default() -> Self {
        Self { seed: 42, cases: 32, shrink: true, every_size: true, blocks: true }
    }
}

impl Run {
    /// Checks `law` on random inputs, with proptest. `Display` of an input is what a report shows.
    pub fn forall<T: Debug + Display>(
        &self,
        inputs: impl Strategy<Value = T> + 'static,
        law: impl Fn(&T) -> Step,
    ) -> Step {
        self.forall_boxed(inputs.boxed(), &law)
    }

    /// [`Run::forall`] with types erased: proptest's runner is compiled once for each type of input, and not
    /// once for each law.
    fn forall_boxed<T: Debug + Display>(
        &self,
        inputs: BoxedStrategy<T>,
        law: &dyn Fn(&T) -> Step,
    ) -> Step {
        let config = Config {
            cases: self.cases,
            rng_seed: RngSeed::Fixed(self.seed),
            failure_persistence: None,
            max_shrink_iters: if self.shrink { 2000 } else { 0 },
            ..Config::default()
        };
        let outcome = TestRunner::new(config)
            .run(&inputs, |input| law(&input).map_err(|_| TestCaseError::fail("broken")));
        match outcome {
            Ok(()) => Ok(()),
            // The runner keeps a message only, so the shrunk input is judged once more.
            Err(TestError::Fail(_, input)) => match law(&input) {
                Err(violation) => Err(violation.on(&input)),
                Ok(()) => Err(Violation::new("", unsteady()).on(&input)),
            },
            Err(TestError::Abort(reason)) => {
                unreachable!("the strategies reject nothing: {reason}")
            }
        }
    }

    /// Checks `law` on random whole numbers or tuples of them, with quickcheck's generators and
    /// shrinkers. (Its runner takes no law that borrows, and the laws here borrow the implementation.)
    pub fn integers<A: Arbitrary + Debug>(&self, law: impl Fn(&A) -> Step) -> Step {
        let mut random = Gen::from_size_and_seed(100, self.seed);
        for _ in 0..self.cases * 4 {
            let input = A::arbitrary(&mut random);
            if let Err(violation) = law(&input) {
                let (input, violation) = self.smallest(input, violation, &law);
                return Err(violation.on(format!("{input:?}")));
            }
        }
        Ok(())
    }

    /// The smallest input that still breaks `law`, going down from `input`.
    fn smallest<A: Arbitrary>(
        &self,
        mut input: A,
        mut violation: Box<Violation>,
        law: impl Fn(&A) -> Step,
    ) -> (A, Box<Violation>) {
        if !self.shrink {
            return (input, violation);
        }
        loop {
            let smaller = input.shrink().find_map(|next| Some((law(&next).err()?, next)));
            let Some((its_violation, next)) = smaller else { return (input, violation) };
            (input, violation) = (next, its_violation);
        }
    }
}

fn unsteady() -> Fault {
    Fault::Broken { what: "the same input was answered differently the second time".to_string() }
}
