use crate::component::*;
use crate::party::*;
macro_rules! temp {
    ($t:ident, $n:literal) => {
        impl Component for dyn $t {
            const NAME: &'static str = $n;
            fn invariants() -> &'static [Invariant<Self>] {
                &[]
            }
            fn bugs() -> &'static [Bug<Self>] {
                &[]
            }
            fn variants() -> &'static [Variant<Self>] {
                &[]
            }
            fn oracle() -> Box<Self> {
                unreachable!()
            }
            fn probes(_: &Self) -> Vec<Probe> {
                vec![]
            }
        }
    };
}
temp!(ParallelVocabEmbedding, "parallel");
