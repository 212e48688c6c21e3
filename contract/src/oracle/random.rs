//! The numbers PyTorch draws from a seed, on the CPU.
//!
//! The generator is MT19937 (Matsumoto and Nishimura 1998). It is written out here, so that the
//! oracle shares no code with the library, which takes it from a crate.

const N: usize = 624;
const M: usize = 397;

/// MT19937, seeded with the low 32 bits of a seed.
#[derive(Debug, Clone)]
pub struct MersenneTwister {
    state: [u32; N],
    next: usize,
}

impl MersenneTwister {
    /// A generator at its start.
    pub fn new(seed: u64) -> Self {
        let mut state = [seed as u32; N];
        for i in 1..N {
            let last = state[i - 1];
            state[i] = (last ^ (last >> 30)).wrapping_mul(1_812_433_253).wrapping_add(i as u32);
        }
        Self { state, next: N }
    }

    /// 32 random bits.
    pub fn word(&mut self) -> u32 {
        if self.next == N {
            self.twist();
        }
        let mut y = self.state[self.next];
        self.next += 1;
        y ^= y >> 11;
        y ^= (y << 7) & 0x9D2C_5680;
        y ^= (y << 15) & 0xEFC6_0000;
        y ^ (y >> 18)
    }

    fn twist(&mut self) {
        for i in 0..N {
            let y = (self.state[i] & 0x8000_0000) | (self.state[(i + 1) % N] & 0x7FFF_FFFF);
            let odd = if y & 1 == 1 { 0x9908_B0DF } else { 0 };
            self.state[i] = self.state[(i + M) % N] ^ (y >> 1) ^ odd;
        }
        self.next = 0;
    }

    /// `[0, 1)` in 24 bits: one word.
    pub fn unit24(&mut self) -> f64 {
        f64::from(self.word() & 0x00FF_FFFF) / (1u64 << 24) as f64
    }

    /// `[0, 1)` in 53 bits: two words, the first is the high one.
    pub fn unit53(&mut self) -> f64 {
        let bits = (u64::from(self.word()) << 32) | u64::from(self.word());
        (bits & ((1 << 53) - 1)) as f64 / (1u64 << 53) as f64
    }
}

/// `n` values, uniform on `[low, high)`: one draw each.
pub fn uniform(n: usize, (low, high): (f32, f32), seed: u64) -> Vec<f32> {
    let mut random = MersenneTwister::new(seed);
    let width = f64::from(high - low);
    let value = |unit: f64| {
        let value = (unit * width + f64::from(low)) as f32;
        if value == high { low } else { value } // rounding may reach the end of the range
    };
    (0..n).map(|_| value(random.unit24())).collect()
}
