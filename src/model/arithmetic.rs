//! What a model costs, from its sizes alone: parameters, operations and memory.

use crate::checkpoint::CheckpointConfig;
use crate::checks::require;
use crate::error::{Error, Result};

/// The arithmetic of a Llama of given sizes. Nothing is built.
///
/// ```
/// use quadrivium::model::{Arithmetic, LlamaSizes};
///
/// let llama_2_7b = Arithmetic::new(LlamaSizes::LLAMA_2_7B)?;
/// assert_eq!(llama_2_7b.parameters().total(), 6_738_415_616);
/// // 32 key heads of 128 elements in 32 blocks, keys and values, 2 bytes each.
/// assert_eq!(llama_2_7b.cache_bytes(32, 2), 524_288);
/// # Ok::<(), quadrivium::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arithmetic {
    sizes: LlamaSizes,
}

/// The sizes that a Llama's cost depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LlamaSizes {
    /// `v`.
    pub vocab_size: u64,
    /// `h`.
    pub hidden_size: u64,
    /// `L`.
    pub num_hidden_layers: u64,
    /// `nh`.
    pub num_attention_heads: u64,
    /// `nkv`.
    pub num_key_value_heads: u64,
    /// `hd`.
    pub head_dim: u64,
    /// `f`.
    pub intermediate_size: u64,
    /// Whether the output is the table once more.
    pub tied: bool,
}

/// Sizes in the order of a table: v, h, L, nh, nkv, hd, f.
const fn sizes([v, h, layers, nh, nkv, hd, f]: [u64; 7], tied: bool) -> LlamaSizes {
    LlamaSizes {
        vocab_size: v,
        hidden_size: h,
        num_hidden_layers: layers,
        num_attention_heads: nh,
        num_key_value_heads: nkv,
        head_dim: hd,
        intermediate_size: f,
        tied,
    }
}

impl LlamaSizes {
    /// SmolLM with 135 million parameters.
    pub const SMOLLM_135M: Self = sizes([49_152, 576, 30, 9, 3, 64, 1536], true);
    /// TinyLlama with 1.1 billion.
    pub const TINYLLAMA_1_1B: Self = sizes([32_000, 2048, 22, 32, 4, 64, 5632], false);
    /// Llama 3.2 with 1 billion.
    pub const LLAMA_3_2_1B: Self = sizes([128_256, 2048, 16, 32, 8, 64, 8192], true);
    /// Llama 2 with 7 billion: every query head has its own key head.
    pub const LLAMA_2_7B: Self = sizes([32_000, 4096, 32, 32, 32, 128, 11_008], false);
    /// Llama 3 with 8 billion.
    pub const LLAMA_3_8B: Self = sizes([128_256, 4096, 32, 32, 8, 128, 14_336], false);
    /// Llama 2 with 70 billion.
    pub const LLAMA_2_70B: Self = sizes([32_000, 8192, 80, 64, 8, 128, 28_672], false);
}

/// Parameters, by part. All blocks together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameters {
    /// The table.
    pub embedding: u64,
    /// `W_q`, `W_k`, `W_v`, `W_o`.
    pub attention: u64,
    /// The three matrices of SwiGLU.
    pub feed_forward: u64,
    /// The gains of all norms.
    pub norms: u64,
    /// The output's own matrix; 0 if it is tied.
    pub output: u64,
}

impl Parameters {
    /// All of them.
    pub fn total(&self) -> u64 {
        let Self { embedding, attention, feed_forward, norms, output } = self;
        embedding + attention + feed_forward + norms + output
    }
}

impl Arithmetic {
    /// The arithmetic of these sizes.
    ///
    /// # Errors
    /// A size of 0; one that is larger than any model's by far, so that no product leaves a `u64`; query heads that can't
    /// share the key heads.
    pub fn new(sizes: LlamaSizes) -> Result<Self> {
        for (name, size, most, rule) in [
            ("vocab_size", sizes.vocab_size, 1 << 24, "at least 1 and at most 16777216"),
            ("hidden_size", sizes.hidden_size, 1 << 17, "at least 1 and at most 131072"),
            ("num_hidden_layers", sizes.num_hidden_layers, 1 << 12, "at least 1 and at most 4096"),
            (
                "num_attention_heads",
                sizes.num_attention_heads,
                1 << 12,
                "at least 1 and at most 4096",
            ),
            (
                "num_key_value_heads",
                sizes.num_key_value_heads,
                1 << 12,
                "at least 1 and at most 4096",
            ),
            ("head_dim", sizes.head_dim, 1 << 12, "at least 1 and at most 4096"),
            (
                "intermediate_size",
                sizes.intermediate_size,
                1 << 20,
                "at least 1 and at most 1048576",
            ),
        ] {
            require((1..=most).contains(&size), name, rule, size as f64)?;
        }
        let (num_heads, num_kv_heads) = (sizes.num_attention_heads, sizes.num_key_value_heads);
        if num_heads % num_kv_heads != 0 {
            let (num_heads, num_kv_heads) = (num_heads as usize, num_kv_heads as usize);
            return Err(Error::KeyValueHeads { num_heads, num_kv_heads });
        }
        Ok(Self { sizes })
    }

    /// The arithmetic of a checkpoint.
    ///
    /// # Errors
    /// As for [`Arithmetic::new`].
    pub fn of(config: &CheckpointConfig) -> Result<Self> {
        Self::new(LlamaSizes {
            vocab_size: config.vocab_size as u64,
            hidden_size: config.hidden_size as u64,
            num_hidden_layers: config.num_hidden_layers as u64,
            num_attention_heads: config.num_attention_heads as u64,
            num_key_value_heads: config.num_key_value_heads as u64,
            head_dim: config.head_dim as u64,
            intermediate_size: config.intermediate_size as u64,
            tied: config.tie_word_embeddings,
        })
    }

    /// The sizes.
    pub fn sizes(&self) -> &LlamaSizes {
        &self.sizes
    }

    // ANCHOR: arithmetic
    /// The parameters of each part.
    pub fn parameters(&self) -> Parameters {
        let LlamaSizes { vocab_size: v, hidden_size: h, num_hidden_layers: layers, .. } =
            self.sizes;
        let LlamaSizes { num_attention_heads: nh, num_key_value_heads: nkv, .. } = self.sizes;
        let LlamaSizes { head_dim: hd, intermediate_size: f, tied, .. } = self.sizes;
        Parameters {
            embedding: v * h,
            attention: layers * (2 * h * nh * hd + 2 * h * nkv * hd), // q and o, k and v
            feed_forward: layers * 3 * h * f,
            norms: (2 * layers + 1) * h,
            output: if tied { 0 } else { v * h },
        }
    }

    /// Floating-point operations of the forward pass for one token that sees `t` positions, itself among them.
    ///
    /// A product with a matrix multiplies and adds once for each of its elements. A query meets `t` keys and `t` values.
    /// Norms, softmax, rotation and gate are not counted: they are a small part.
    pub fn forward_flops(&self, t: u64) -> u64 {
        let Parameters { attention, feed_forward, .. } = self.parameters();
        let LlamaSizes { num_attention_heads: nh, head_dim: hd, .. } = self.sizes;
        let output = self.sizes.vocab_size * self.sizes.hidden_size; // tied or not, it is multiplied with
        let looks = (self.sizes.num_hidden_layers * 2 * nh * hd).saturating_mul(t);
        (attention + feed_forward + output).saturating_add(looks).saturating_mul(2)
    }

    /// The same with the backward pass, which computes two products for each of the forward pass: one for the gradient of
    /// what came in, one for that of the matrix.
    pub fn training_flops(&self, t: u64) -> u64 {
        self.forward_flops(t).saturating_mul(3)
    }

    /// Bytes of a KV cache for each position, if there are `num_kv_heads` key heads and an element has `bytes`: keys and
    /// values, in every block.
    pub fn cache_bytes(&self, num_kv_heads: u64, bytes: u64) -> u64 {
        (2 * self.sizes.num_hidden_layers * self.sizes.head_dim)
            .saturating_mul(num_kv_heads)
            .saturating_mul(bytes)
    }
    // ANCHOR_END: arithmetic
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{LlamaTransformer, Tied};
    use crate::tensor::*;

    /// As the publishers say; those of Llama 2 and 3 are exact in their own repositories.
    #[test]
    fn published_counts() {
        for (sizes, total) in [
            (LlamaSizes::SMOLLM_135M, 134_515_008),
            (LlamaSizes::TINYLLAMA_1_1B, 1_100_048_384),
            (LlamaSizes::LLAMA_3_2_1B, 1_235_814_400),
            (LlamaSizes::LLAMA_2_7B, 6_738_415_616),
            (LlamaSizes::LLAMA_3_8B, 8_030_261_248),
            (LlamaSizes::LLAMA_2_70B, 68_976_648_192),
        ] {
            assert_eq!(Arithmetic::new(sizes).unwrap().parameters().total(), total);
        }
    }

    /// A model of these sizes has that many parameters.
    #[test]
    fn a_model_is_counted() {
        let dev = Cpu::default();
        let own = LlamaTransformer::<50, 16, 4, 2, 4, 48, 3, f32, _>::new(&dev, Default::default());
        let tied = LlamaTransformer::<50, 16, 4, 2, 4, 48, 3, f32, _, Tied>::tied(
            &dev,
            Default::default(),
        );
        let counted = |tied| {
            let sizes = sizes([50, 16, 3, 4, 2, 4, 48], tied);
            Arithmetic::new(sizes).unwrap().parameters().total() as usize
        };
        assert_eq!(own.unwrap().num_trainable_params(), counted(false));
        assert_eq!(tied.unwrap().num_trainable_params(), counted(true));
    }

    /// h 2, one head of 2, f 3, v 5, one block. W_q, W_k, W_v, W_o have 4 elements each, the gate 6 three times, the output
    /// 10: 44 products, and for 3 positions 2 · 2 · 3 = 12 more. Each is a multiplication and an addition.
    #[test]
    fn operations_by_hand() {
        let tiny = Arithmetic::new(sizes([5, 2, 1, 1, 1, 2, 3], true)).unwrap();
        assert_eq!(tiny.forward_flops(3), 2 * (16 + 18 + 10 + 12));
        assert_eq!(tiny.training_flops(3), 6 * 56);
        assert_eq!(tiny.cache_bytes(1, 4), 16);
    }

    #[test]
    fn sizes_that_make_no_model() {
        let with = |change: fn(&mut LlamaSizes)| {
            let mut sizes = LlamaSizes::LLAMA_3_8B;
            change(&mut sizes);
            Arithmetic::new(sizes).unwrap_err().to_string()
        };
        assert!(with(|sizes| sizes.head_dim = 0).starts_with("head_dim must be at least 1"));
        assert!(with(|sizes| sizes.vocab_size = 1 << 25).contains("vocab_size"));
        assert!(with(|sizes| sizes.num_key_value_heads = 5).contains("5 key and value heads"));
    }
}
