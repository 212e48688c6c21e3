//! What can be wrong with a checkpoint.

use crate::error::Error;
use crate::number::Number;

/// Why a checkpoint was refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointProblem {
    /// A file that is not there.
    #[error("there is no such file: {0}")]
    Missing(String),

    /// A file that is there and can't be read.
    #[error(
        "it can't be read: {0}; see that it is a file, of text where it should be, and readable"
    )]
    File(String),

    /// A file of settings that is no JSON, or not an object.
    #[error("it is not a JSON object: {0}; correct it, or fetch it again")]
    Json(String),

    /// A setting that must be there.
    #[error(
        "`{name}` is missing, and without it the model can't be computed; add the value from the model's paper or card"
    )]
    MissingSetting {
        /// Its name in the file.
        name: String,
    },

    /// A setting that is something else than it must be.
    #[error("`{name}` must be {rule}, got {got}")]
    Setting {
        /// Its name in the file.
        name: String,
        /// The rule, in words.
        rule: String,
        /// The value found there.
        got: String,
    },

    /// Two settings that say different things about one.
    #[error("`{one}` and `{other}` contradict each other: remove the one that is wrong")]
    Contradiction {
        /// The name of one in the file.
        one: String,
        /// The name of the other.
        other: String,
    },

    /// Scaled frequencies that can't be computed.
    #[error("RoPE's frequencies can't be scaled as the settings say: {0}")]
    RopeScaling(String),

    /// Settings that would be read as others.
    #[error(
        "config.json can't hold {ours}: it would be read as {read}; give numbers that are finite"
    )]
    Unwritable {
        /// The settings.
        ours: String,
        /// What a reader would find.
        read: String,
    },

    /// A setting whose meaning this crate does not compute.
    #[error(
        "`{name}` is {got}, and this crate computes {supported}: its results would be those of another model"
    )]
    Unsupported {
        /// Its name in the file.
        name: String,
        /// The value found there.
        got: String,
        /// What is computed.
        supported: String,
    },

    /// Weights that are changed by others when transformers reads them.
    #[error(
        "it says that an adapter changes the weights, and this crate does not compute it: its results would be those of another \
         model; merge it into the weights, or take it out of the folder"
    )]
    Adapter,

    /// Sizes that are not those of the type that the checkpoint was to be loaded into.
    #[error("its size is not that of the model's type: {}; choose the type of its size", listed(.0))]
    Sizes(Vec<SizeDiffers>),

    /// Heads that are together not as wide as a token.
    #[error(
        "`head_dim` is {head_dim} in the file, and this crate computes hidden_size / num_attention_heads only, which is \
         {computed}: no type of a model fits"
    )]
    HeadDim {
        /// That of the file.
        head_dim: usize,
        /// The one that is computed.
        computed: usize,
    },

    /// An output that the type does not have.
    #[error(
        "`tie_word_embeddings` is {in_file} in the file and {} in the type: {}", !in_file,
        if *in_file { "choose the type whose output is `Tied`" }
        else { "choose the type whose output is a matrix of its own, and not `Tied`" }
    )]
    Tie {
        /// Whether the output of the checkpoint is the table once more.
        in_file: bool,
    },

    /// Settings that are not those of the model that was to be saved with them.
    #[error("the settings are not those of the model: {}; give the model's own", of_model(.0))]
    OtherModel(Vec<SizeDiffers>),

    /// A model with a part that no Llama has.
    #[error(
        "{0}: no `config.json` of a Llama can say that, and a reader would compute something else; save it with \
         `save_weights`"
    )]
    NoLlama(String),

    /// A folder that was written into while it was read.
    #[error("the checkpoint was changed after it was opened; open it again")]
    Changed,

    /// A tensor that the model needs.
    #[error("no tensor is called {name:?}, and the model needs it; {}", remedy_of_missing(name))]
    MissingTensor {
        /// Its name.
        name: String,
    },

    /// A tensor that the model does not have.
    #[error(
        "the tensor {name:?} has no place in the model: it would be left out of every result; {}",
        remedy_of_unknown(name)
    )]
    UnknownTensor {
        /// Its name.
        name: String,
    },

    /// A tensor that is in two files.
    #[error("{name:?} is in two files: one of the two is wrong; fetch the checkpoint again")]
    Twice {
        /// Its name.
        name: String,
    },

    /// A file that holds more than the model.
    #[error("it has {got} bytes, and the model's weights need at most {most}: fetch it again")]
    TooLong {
        /// Its length.
        got: u64,
        /// The largest that it may be.
        most: u64,
    },

    /// A tensor of another shape.
    #[error(
        "{name:?} has shape {got:?}, expected {expected:?} by the sizes in config.json; correct those, or fetch both again"
    )]
    Shape {
        /// Its name.
        name: String,
        /// The shape that the settings ask for.
        expected: Vec<usize>,
        /// The shape in the file.
        got: Vec<usize>,
    },

    /// A tensor of a type that is not read.
    #[error("{name:?} holds {got}, and F64, F32, F16 and BF16 are read: convert the checkpoint")]
    FloatType {
        /// Its name.
        name: String,
        /// The type in the file.
        got: String,
    },

    /// A weight that is no number.
    #[error(
        "{name:?} has {value} at place {place}: every weight must be finite; fetch the file again"
    )]
    NotFinite {
        /// The tensor.
        name: String,
        /// The place in it, in its order in memory.
        place: usize,
        /// The value found there.
        value: f64,
    },

    /// A weight that the model's own type can't hold.
    #[error(
        "{name:?} has {} at place {place}, which is more than the model's float type can hold; read it into a model of a \
         larger type", Number(*value)
    )]
    TooLarge {
        /// The tensor.
        name: String,
        /// The place in it, in its order in memory.
        place: usize,
        /// The value found there.
        value: f64,
    },

    /// A weight of a model, such as one whose training diverged, that no reader takes.
    #[error(
        "{name:?} has {value} at place {place}, and no reader takes a weight that is not finite; save a model whose weights are"
    )]
    Diverged {
        /// The tensor.
        name: String,
        /// The place in it, in its order in memory.
        place: usize,
        /// The value found there.
        value: f64,
    },

    /// Weights that need more memory than there is.
    #[error(
        "the weights need {needed} bytes of memory, and {available} are available: keep them as they are stored, or in fewer bytes \
         each"
    )]
    Memory {
        /// Bytes of the weights, kept as they were asked for.
        needed: u64,
        /// Bytes that the system still has.
        available: u64,
    },

    /// A file that is not what its ending says.
    #[error("it is not a complete .safetensors file ({0}); fetch it again")]
    NotSafetensors(String),

    /// A tied checkpoint whose output matrix is another than its table.
    #[error(
        "`tie_word_embeddings` is true, but lm_head.weight is a different matrix from model.embed_tokens.weight: \
         one of the two is wrong"
    )]
    NotTied,
}

impl CheckpointProblem {
    /// Why frequencies can't be scaled, with the settings' names in the file.
    pub(super) fn scaling(mut problem: Error) -> Self {
        if let Error::Setting { name, .. } = &mut problem {
            *name = match *name {
                "max_seq_len" => "original_max_position_embeddings",
                "rotary_dim" => "head_dim",
                "base" => "rope_theta",
                "scale" => "attention_factor",
                other => other,
            };
        }
        Self::RopeScaling(problem.to_string())
    }
}

/// One size of two that differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SizeDiffers {
    /// The setting's name in the file.
    pub name: &'static str,
    /// Its value in the type.
    pub in_type: String,
    /// Its value in the file.
    pub in_file: String,
}

fn remedy_of_missing(name: &str) -> &'static str {
    match name {
        "lm_head.weight" => {
            "where the output is the table once more, `tie_word_embeddings` must be true in config.json"
        }
        "model.embed_tokens.weight" => {
            "fetch all files again, or, where output and table are one matrix that is saved as lm_head.weight, give it this name"
        }
        _ => "fetch all files again, or correct `num_hidden_layers`",
    }
}

fn remedy_of_unknown(name: &str) -> &'static str {
    let bare = ["embed_tokens.", "layers.", "norm."];
    if bare.iter().any(|part| name.starts_with(part)) {
        "a checkpoint of a model without its output has no \"model.\" before its names: save it with the output"
    } else if name.ends_with(".bias") {
        "models with biases are not computed here"
    } else {
        "take it out of the file if it changes nothing"
    }
}

fn listed(differences: &[SizeDiffers]) -> String {
    let one = |SizeDiffers { name, in_type, in_file }: &SizeDiffers| {
        format!("`{name}` is {in_file} in the file and {in_type} in the type")
    };
    differences.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn of_model(differences: &[SizeDiffers]) -> String {
    let one = |SizeDiffers { name, in_type, in_file }: &SizeDiffers| {
        format!("`{name}` is {in_file} in the settings and {in_type} in the model")
    };
    differences.iter().map(one).collect::<Vec<_>>().join(", ")
}
