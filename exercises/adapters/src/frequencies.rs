//! The learner's stretched RoPE as an implementation of the contract.

use super::Learner;
use exercises::frequencies;
use interfaces::frequencies::interface::*;

impl StretchedRope for Learner {
    fn frequencies(&self, case: &FrequenciesCase) -> Reply<Frequencies> {
        self.may("frequencies")?;
        let FrequenciesCase { ref rule, rotary_dim: d, base, offset, seq_len, .. } = *case;
        let rows = (offset, seq_len);
        let (frequencies, scale) = match *rule {
            Stretch::Plain => (frequencies::plain(d, base), 1.0),
            Stretch::Interpolated { factor } => (frequencies::interpolated(d, base, factor), 1.0),
            Stretch::Ntk { factor } => (frequencies::ntk(d, base, factor), 1.0),
            Stretch::DynamicNtk { factor, max_seq_len } => {
                (frequencies::dynamic_ntk(d, base, (factor, max_seq_len), rows), 1.0)
            }
            Stretch::Yarn { factor, max_seq_len, beta_fast, beta_slow, truncate } => {
                let rule =
                    frequencies::Yarn { factor, max_seq_len, beta_fast, beta_slow, truncate };
                frequencies::yarn(d, base, &rule)
            }
            Stretch::Llama3 { factor, max_seq_len, low_freq_factor, high_freq_factor } => {
                let rule =
                    frequencies::Llama3 { factor, max_seq_len, low_freq_factor, high_freq_factor };
                (frequencies::llama3(d, base, &rule), 1.0)
            }
            Stretch::LongRope { factor, max_seq_len, ref short_factor, ref long_factor } => {
                let rule = frequencies::LongRope { factor, max_seq_len, short_factor, long_factor };
                frequencies::longrope(d, base, &rule, rows)
            }
        };
        Ok(Frequencies { frequencies, scale })
    }

    fn forward_in(&self, _: Manner, case: &StretchedRopeCase) -> Reply<Vec<f32>> {
        self.may("forward")?;
        let StretchedRopeCase { shape, offset, frequencies, scale, x } = case;
        Ok(frequencies::turn(x, *shape, (frequencies, *scale), *offset))
    }

    fn backward_in(
        &self,
        _: Manner,
        case: &StretchedRopeCase,
        dy: &[f32],
    ) -> Reply<StretchedRopeGrads> {
        self.may("backward")?;
        let StretchedRopeCase { shape, offset, frequencies, scale, x } = case;
        let (dx, dtheta) =
            frequencies::turn_backward(x, dy, *shape, (frequencies, *scale), *offset);
        Ok(StretchedRopeGrads { dx, dtheta })
    }
}
