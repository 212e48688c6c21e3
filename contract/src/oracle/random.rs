//! The numbers PyTorch draws from a seed, on the CPU.
//!
//! The generator is MT19937 (Matsumoto and Nishimura 1998). It is written out here, so that the
//! oracle shares no code with the library, which takes it from a crate.

use crate::interface::NormalInit;

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

/// The steps of a normal draw. A bug writes one of them wrong.
#[derive(Debug, Clone, Copy)]
pub struct NormalSteps {
    /// The generator for a seed.
    pub start: fn(u64) -> MersenneTwister,
    /// Whether a table of `n` values is drawn pair by pair, in double precision.
    pub is_short: fn(usize) -> bool,
    /// From two uniforms of a short draw: `(u, t)` of the radius `√(−2 ln u)` and the turn `t`.
    pub short_pair: fn(f64, f64) -> (f64, f64),
    /// The same for the two uniforms of a long draw.
    pub long_pair: fn(f64, f64) -> (f64, f64),
    /// How far apart in a block of 16 the two values of a pair are: 8, or 1 for neighbours.
    pub partner: usize,
    /// How many of the last values are drawn again, from one more block, if `n` is no multiple of
    /// 16.
    pub tail: fn(usize) -> usize,
    /// The pair of values for a radius and an angle.
    pub polar: fn(f64, f64) -> (f64, f64),
    /// A value with its mean and standard deviation.
    pub scale: fn(f64, NormalInit) -> f64,
}

impl Default for NormalSteps {
    fn default() -> Self {
        Self {
            start: MersenneTwister::new,
            is_short: |n| n < 16,
            short_pair: |u1, u2| (1.0 - u2, u1),
            long_pair: |u1, u2| (1.0 - u1, u2),
            partner: 8,
            tail: |_| 16,
            polar: |radius, angle| (radius * angle.cos(), radius * angle.sin()),
            scale: |z, init| z * f64::from(init.std) + f64::from(init.mean),
        }
    }
}

impl NormalSteps {
    /// `n` normal values. PyTorch has two ways, and `n` chooses.
    pub fn draw(&self, n: usize, init: NormalInit) -> Vec<f32> {
        let mut random = (self.start)(init.seed);
        let values =
            if (self.is_short)(n) { self.short(n, &mut random) } else { self.long(n, &mut random) };
        values.into_iter().map(|z| (self.scale)(z, init) as f32).collect()
    }

    /// Two values for each two draws, in double precision.
    fn short(&self, n: usize, random: &mut MersenneTwister) -> Vec<f64> {
        let mut values = Vec::with_capacity(n + 1);
        while values.len() < n {
            let (u, turn) = (self.short_pair)(random.unit53(), random.unit53());
            let (first, second) = (self.polar)(radius(u), std::f64::consts::TAU * turn);
            values.extend([first, second]);
        }
        values.truncate(n);
        values
    }

    /// All uniforms first, then pairs in blocks of 16; then the last 16 values once more.
    fn long(&self, n: usize, random: &mut MersenneTwister) -> Vec<f64> {
        let mut values: Vec<f64> = (0..n).map(|_| random.unit24()).collect();
        let whole = n - n % 16;
        for block in values[..whole].chunks_mut(16) {
            self.long_block(block);
        }
        if whole < n {
            let mut block: Vec<f64> = (0..16).map(|_| random.unit24()).collect();
            self.long_block(&mut block);
            let renewed = (self.tail)(n);
            values[n - renewed..].copy_from_slice(&block[..renewed]);
        }
        values
    }

    /// Turns 16 uniforms into 16 normal values.
    fn long_block(&self, block: &mut [f64]) {
        // `partner` is one bit of the place: a place without it is the first of its pair.
        for i in (0..16).filter(|i| i & self.partner == 0) {
            let j = i + self.partner;
            let (u, turn) = (self.long_pair)(block[i], block[j]);
            // PyTorch rounds the angle to f32.
            let angle = f64::from(std::f32::consts::TAU * turn as f32);
            (block[i], block[j]) = (self.polar)(radius(u), angle);
        }
    }
}

fn radius(u: f64) -> f64 {
    (-2.0 * u.ln()).sqrt()
}

/// `n` normal values, as PyTorch draws them.
pub fn normal(n: usize, init: NormalInit) -> Vec<f32> {
    NormalSteps::default().draw(n, init)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn randn(n: usize, mean: f32, std: f32, seed: u64) -> Vec<f32> {
        normal(n, NormalInit { mean, std, seed })
    }

    fn close(got: &[f32], expected: &[f32], std: f32) {
        for (got, expected) in got.iter().zip(expected) {
            assert!((got - expected).abs() <= 1e-6 * std, "{got} is not {expected}");
        }
    }

    /// From PyTorch 2.15, as `tests/goldens` records it: `manual_seed(42)`, then `rand` or `randn`.
    #[test]
    fn the_numbers_of_pytorch() {
        let rand = uniform(4, (0.0, 1.0), 42);
        close(&rand, &[0.882_269_26, 0.915_003_96, 0.382_863_76, 0.959_305_64], 1.0);
        let short = randn(12, 0.0, 1.0, 42);
        let expected = [
            0.336_690_4,
            0.128_809_4,
            0.234_462_4,
            0.230_333,
            -1.122_856,
            -0.186_328_3,
            2.208_201,
            -0.637_997,
            0.461_657_2,
            0.267_350_9,
            0.534_904_7,
            0.809_357_2,
        ];
        close(&short, &expected, 1.0);
        let long = randn(16, 0.0, 1.0, 42);
        let expected = [
            1.926_915,
            1.487_284,
            0.900_717_2,
            -2.105_521,
            0.678_418_5,
            -1.234_545,
            -0.043_067_48,
            -1.604_667,
            -0.752_135_3,
            1.648_723,
            -0.392_478_6,
            -1.403_607,
            -0.727_881_3,
            -0.559_430_2,
            -0.768_838_9,
            0.762_445_4,
        ];
        close(&long, &expected, 1.0);
        // 30 is no multiple of 16: the last 16 are drawn again, from place 14 on.
        let tail = randn(30, 0.0, 1.0, 42);
        close(&tail[..14], &expected[..14], 1.0);
        let expected = [
            -2.316_923,
            -0.216_804_7,
            -1.384_674,
            -0.871_236_1,
            -0.223_365_9,
            1.717_361,
            0.318_880_3,
            -0.424_519,
            -0.828_554_3,
            0.330_898_4,
            -1.557_572,
            0.995_636_1,
            -0.879_785_8,
            -0.601_142,
            -1.274_151,
            2.122_785,
        ];
        close(&tail[14..], &expected, 1.0);
        // 24: the last 16 begin at place 8.
        assert!((randn(24, 0.0, 1.0, 42)[8] - 0.3559).abs() < 5e-5);
    }

    /// A seed with high bits, a mean and a standard deviation.
    #[test]
    fn other_settings_of_pytorch() {
        let shifted = randn(17, 0.5, 0.02, (1 << 32) + 7);
        let expected = [0.483_597_3, 0.493_508_7, 0.538_527_4, 0.493_399_8, 0.503_968_9];
        // The mean's digits end at 6e-8, three times as far apart as 1e-6 of std.
        close(&shifted, &expected, 0.1);
        assert!((shifted[16] - 0.482_666).abs() < 1e-7);
    }
}
