//! What many modules would write in the same way: how dfdx reaches their tensors, and how they are shown.
//!
//! In square brackets, a macro is given the parameters of its `impl`; the module with its sizes comes after them.

/// A module with a `weight` that is drawn, and its `config`. `assert_table` checks the sizes when the program is compiled.
///
/// dfdx copies tensors between modules, but not settings. They are noted when dfdx reaches for the tensor. A module that is
/// built from nothing gets the defaults.
///
/// ```text
/// drawn_weight! {
///     [const V: usize, const M: usize] VocabEmbedding<V, M>, VocabEmbeddingConfig, assert_table(V, M)
/// }
/// ```
macro_rules! drawn_weight {
    ([$($sizes:tt)*] $module:ident<$($size:ident),+>, $config:ident, $assert:expr) => {
        impl<$($sizes)*, F: Dtype, D: Storage<F>> NonMutableModule for $module<$($size,)+ F, D> {}

        impl<$($sizes)*, F: Float, D: Backend<F>> TensorCollection<F, D> for $module<$($size,)+ F, D> {
            type To<F2: Dtype, D2: Device<F2>> = $module<$($size,)+ F2, D2>;

            fn iter_tensors<Vis: ModuleVisitor<Self, F, D>>(
                visitor: &mut Vis,
            ) -> std::result::Result<Option<Self::To<Vis::E2, Vis::D2>>, Vis::Err> {
                const { $assert };
                let config = std::cell::Cell::new($config::default());
                crate::init::prepare_reset(config.get().init());
                visitor.visit_fields(
                    Self::tensor(
                        "weight",
                        |module| {
                            config.set(module.config);
                            &module.weight
                        },
                        |module| {
                            config.set(module.config);
                            crate::init::prepare_reset(module.config.init());
                            &mut module.weight
                        },
                        TensorOptions::reset_with(crate::init::reset),
                    ),
                    |weight| $module { weight, config: config.get() },
                )
            }
        }
    };
}

/// A module without weights. Its settings travel as in [`drawn_weight`]. The first ones are those of a module that is built from
/// nothing, and `unbuilt` makes a module of settings alone.
///
/// ```text
/// settings_only! { [const HD: usize] XPos<HD>, XPosConfig::default(), XPos::unbuilt }
/// ```
macro_rules! settings_only {
    ([$($sizes:tt)*] $module:ident<$($size:ident),+>, $default:expr, $unbuilt:path) => {
        impl<$($sizes)*, F: Float, D: Backend<F>> TensorCollection<F, D> for $module<$($size,)+ D> {
            type To<F2: Dtype, D2: Device<F2>> = $module<$($size,)+ D2>;

            fn iter_tensors<Vis: ModuleVisitor<Self, F, D>>(
                visitor: &mut Vis,
            ) -> std::result::Result<Option<Self::To<Vis::E2, Vis::D2>>, Vis::Err> {
                let config = std::cell::RefCell::new($default);
                visitor.visit_fields(
                    Self::module(
                        "",
                        |module| {
                            config.replace(module.config().to_owned());
                            &module.no_weights
                        },
                        |module| {
                            config.replace(module.config().to_owned());
                            &mut module.no_weights
                        },
                    ),
                    |_| $unbuilt(config.borrow().to_owned()),
                )
            }
        }
    };
}

/// A module of modules: its sizes, then the parts that are type parameters; the name of each field in a checkpoint; and, if there is
/// anything to check, what checks the sizes when the program is compiled.
///
/// ```text
/// parts! {
///     [const H: usize, const NH: usize, const NKV: usize, const HD: usize] GroupedQueryAttention<H, NH, NKV, HD; P>
///     { q_proj: "q_proj", k_proj: "k_proj", v_proj: "v_proj", o_proj: "o_proj", position: "position" },
///     assert_attention(H, NH, NKV, HD)
/// }
/// ```
macro_rules! parts {
    (
        [$($sizes:tt)*] $module:ident<$($size:ident),+ $(; $($part:ident),+)?>
        { $($field:ident: $name:literal),+ } $(, $assert:expr)?
    ) => {
        impl<$($sizes)*, F: Dtype, D: Storage<F> + Storage<f32> $(, $($part),+)?> NonMutableModule
            for $module<$($size,)+ F, D $(, $($part),+)?>
        {
        }

        impl<$($sizes)*, F: Float, D: Backend<F> $(, $($part: TensorCollection<F, D>),+)?>
            TensorCollection<F, D> for $module<$($size,)+ F, D $(, $($part),+)?>
        {
            type To<F2: Dtype, D2: Device<F2>> = $module<$($size,)+ F2, D2 $(, $($part::To<F2, D2>),+)?>;

            fn iter_tensors<Vis: ModuleVisitor<Self, F, D>>(
                visitor: &mut Vis,
            ) -> std::result::Result<Option<Self::To<Vis::E2, Vis::D2>>, Vis::Err> {
                $(const { $assert };)?
                visitor.visit_fields(
                    ($(Self::module($name, |module| &module.$field, |module| &mut module.$field),)+),
                    |($($field,)+)| $module { $($field),+ },
                )
            }
        }
    };
}

/// How a module is shown to a programmer: its name, its sizes, and after the semicolon its fields, but no weights.
///
/// ```text
/// shown! { [const HD: usize, D: Storage<f32>] XPos<HD, D>, head_dim: HD; config }
/// ```
macro_rules! shown {
    ([$($generics:tt)*] $module:ident<$($of:ident),+>, $($name:ident: $size:expr),+ $(; $field:ident)?) => {
        impl<$($generics)*> std::fmt::Debug for $module<$($of),+> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($module))
                    $(.field(stringify!($name), &$size))+
                    $(.field(stringify!($field), &self.$field))?
                    .finish_non_exhaustive()
            }
        }
    };
}

pub(crate) use {drawn_weight, parts, settings_only, shown};
