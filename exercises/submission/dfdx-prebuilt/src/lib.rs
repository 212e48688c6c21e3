//! For building alone: tensor operations of dfdx at the sizes that are asked, compiled once.
//!
//! dfdx's functions are generic, and the crate that calls one compiles it: each submission would compile them again.
//! rustc takes a function that a crate below has compiled already, so the program of a submission is linked with this
//! crate. The course calls nothing of it: it is a table of operations by shapes, and it says nothing of what a task
//! needs.

use tensor::*;

type Of<S> = Tensor<S, f32, Cpu>;
type Taped<S> = Tensor<S, f32, Cpu, OwnedTape<f32, Cpu>>;
type Ids = Tensor<(usize, usize), usize, Cpu>;
type FlatIds = Tensor<(usize,), usize, Cpu>;

/// What leaves a shape as it is.
macro_rules! alike {
    ($of:ident, $name:ident, $shape:ty, $x:ident, $operations:expr) => {
        pub fn $name($x: $of<$shape>, y: $of<$shape>, shape: $shape) -> $of<$shape> {
            let z = $operations;
            let _: Vec<f32> = z.as_vec();
            let _ = z.shape() == &shape;
            let w = y.with_empty_tape();
            (z - w) + y
        }
    };
}
macro_rules! same_shape {
    (|$x:ident| $operations:expr, $($name:ident: $shape:ty;)+) => {$(
        pub mod $name {
            use super::*;
            alike!(Of, plain, $shape, $x, $operations);
            alike!(Taped, taped, $shape, $x, $operations);
            pub fn others(
                x: Of<$shape>,
                y: Taped<$shape>,
                shape: $shape,
                values: Vec<f32>,
            ) -> (Taped<$shape>, Of<$shape>) {
                let new: Of<$shape> = Cpu::default().tensor_from_vec(values, shape);
                let z = (y * x.clone()) - new.leaky_trace() * x.retaped::<OwnedTape<f32, Cpu>>();
                let (w, tape) = z.split_tape();
                (w.clone().put_tape(tape), x * w)
            }
            pub fn backward(x: Taped<$shape>, y: &Of<$shape>) -> Of<$shape> {
                let mut gradients = x.sum::<Rank0, _>().backward();
                let _ = gradients.try_alloc_for(y);
                gradients.get(&y.retaped::<NoneTape>())
            }
        }
    )+};
}

/// Sums and means over an axis, and their way back.
macro_rules! along {
    ($($name:ident: $large:ty, $axes:ty, $small:ty;)+) => {$(
        pub mod $name {
            use super::*;
            pub fn plain(x: Of<$large>, shape: $large) -> (Of<$large>, Of<$small>) {
                let again = || x.with_empty_tape();
                let small = again().sum::<$small, $axes>() + again().mean::<$small, $axes>();
                (small.clone().broadcast_like::<$large, $axes>(&shape), small)
            }
            pub fn taped(x: Taped<$large>, shape: $large) -> (Taped<$large>, Taped<$small>) {
                let again = || x.with_empty_tape();
                let small = again().sum::<$small, $axes>() + again().mean::<$small, $axes>();
                (small.with_empty_tape().broadcast_like::<$large, $axes>(&shape), small)
            }
        }
    )+};
}

/// Sums over rows, and one row for all.
macro_rules! over_rows {
    ($($name:ident: $large:ty, $axes:ty, $small:ty;)+) => {$(
        pub mod $name {
            use super::*;
            pub fn plain(x: Of<$large>, y: Of<$small>, shape: $large) -> (Of<$large>, Of<$small>) {
                (y.broadcast_like::<$large, $axes>(&shape), x.sum::<$small, $axes>())
            }
            pub fn taped(x: Taped<$large>, y: Taped<$small>, shape: $large) -> (Taped<$large>, Taped<$small>) {
                (y.broadcast_like::<$large, $axes>(&shape), x.sum::<$small, $axes>())
            }
        }
    )+};
}

/// Another shape, and back.
macro_rules! reshapes {
    ($($name:ident: $from:ty, $to:ty;)+) => {$(
        pub mod $name {
            use super::*;
            pub fn plain(x: Of<$from>, to: $to, from: $from) -> Of<$from> { x.reshape_like(&to).reshape_like(&from) }
            pub fn taped(x: Taped<$from>, to: $to, from: $from) -> Taped<$from> { x.reshape_like(&to).reshape_like(&from) }
        }
    )+};
}

/// Matrices, and what is multiplied by them or looked up in them.
macro_rules! matrices {
    ($($name:ident $n:literal $m:literal;)+) => {
        same_shape! { |x| x * 2.0, $($name: (Const<$n>, Const<$m>);)+ }
        pub mod products {
            use super::*;
            $(pub mod $name {
                use super::*;
                type W = (Const<$n>, Const<$m>);
                pub fn plain(x: Of<(usize, usize, Const<$n>)>, w: Of<W>) -> Of<(usize, usize, Const<$m>)> { x.matmul(w) }
                pub fn taped(x: Taped<(usize, usize, Const<$n>)>, w: Taped<W>) -> Taped<(usize, usize, Const<$m>)> { x.matmul(w) }
                pub fn mixed(x: Taped<(usize, usize, Const<$n>)>, w: Of<W>) -> Taped<(usize, usize, Const<$m>)> { x.matmul(w) }
                pub fn turned(w: Of<W>, t: Taped<W>) -> (Of<(Const<$m>, Const<$n>)>, Taped<(Const<$m>, Const<$n>)>) {
                    (w.permute::<_, Axes2<1, 0>>(), t.permute::<_, Axes2<1, 0>>())
                }
                pub fn rows(w: Of<W>, t: Taped<W>, ids: Ids) -> (Of<(usize, usize, Const<$m>)>, Taped<(usize, usize, Const<$m>)>) {
                    (w.gather(ids.clone()), t.gather(ids))
                }
                pub fn flat_rows(w: Of<W>, ids: FlatIds) -> Of<(usize, Const<$m>)> { w.gather(ids) }
            })+
        }
    };
}

/// Rows of a width: a model's activations.
macro_rules! rows {
    ($($name:ident $n:literal)+) => {
        pub mod rows {
            use super::*;
            same_shape! {
                |x| {
                    let again = || x.with_empty_tape();
                    (again().square() - -again() / again().sigmoid()) * 2.0 + 1.0
                },
                $($name: (usize, usize, Const<$n>);)+
            }
        }
        pub mod last_of_rows {
            use super::*;
            along! { $($name: (usize, usize, Const<$n>), Axis<2>, (usize, usize);)+ }
        }
        pub mod positions_of_rows {
            use super::*;
            over_rows! { $($name: (usize, usize, Const<$n>), Axes2<0, 1>, (Const<$n>,);)+ }
        }
        pub mod batch_of_rows {
            use super::*;
            over_rows! { $($name: (usize, usize, Const<$n>), Axis<0>, (usize, Const<$n>);)+ }
        }
        pub mod weights {
            use super::*;
            same_shape! { |x| x * 2.0, $($name: (Const<$n>,);)+ }
        }
        pub mod others_of_rows {
            use super::*;
            $(pub mod $name {
                use super::*;
                type Rows = (usize, usize, Const<$n>);
                type Turned = (Const<$n>, usize, usize);
                pub fn flat(values: Vec<f32>, shape: (usize, Const<$n>)) -> Of<(usize, Const<$n>)> {
                    Cpu::default().tensor_from_vec(values, shape)
                }
                pub fn turned(values: Vec<f32>, shape: Turned) -> Of<Rows> {
                    let x: Of<Turned> = Cpu::default().tensor_from_vec(values, shape);
                    x.permute::<_, Axes3<2, 1, 0>>()
                }
                pub fn chosen(
                    of: Tensor<(usize, usize), bool, Cpu>,
                    shape: Rows,
                    x: Of<Rows>,
                    y: Taped<Rows>,
                ) -> (Of<Rows>, Taped<Rows>) {
                    let of = of.broadcast_like::<Rows, Axis<2>>(&shape);
                    (of.clone().choose(x.clone(), x.clone()), of.choose(y, x))
                }
                pub fn half(x: Of<Rows>) -> (Of<Rows>, Vec<f16>) {
                    let half = x.to_dtype::<f16>();
                    (half.clone().to_dtype::<f32>(), half.as_vec())
                }
            })+
        }
    };
}

/// Groups, or heads, of a width.
macro_rules! heads {
    ($($name:ident $n:literal)+) => {
        pub mod heads {
            use super::*;
            same_shape! {
                |x| (x.with_empty_tape().square() / x) * 2.0,
                $($name: (usize, usize, usize, Const<$n>);)+
            }
        }
        pub mod last_of_heads {
            use super::*;
            along! { $($name: (usize, usize, usize, Const<$n>), Axis<3>, (usize, usize, usize);)+ }
        }
    };
}

/// Rows of a model: cut into heads and put together again, and what they are multiplied with for scores over a vocabulary.
macro_rules! model_rows {
    ($($name:ident $n:literal)+) => {
        pub mod model_rows {
            use super::*;
            pub mod cut {
                use super::*;
                reshapes! { $($name: (usize, usize, Const<$n>), (usize, usize, usize, Const<$n>);)+ }
            }
            pub mod heads {
                use super::*;
                reshapes! { $($name: (usize, usize, Const<$n>), (usize, usize, usize, usize);)+ }
            }
            pub mod of_any_width {
                use super::*;
                reshapes! { $($name: (usize, usize, Const<$n>), (usize, usize, usize);)+ }
            }
            pub mod as_they_are {
                use super::*;
                reshapes! { $($name: (usize, usize, Const<$n>), (usize, usize, Const<$n>);)+ }
            }
            $(pub mod $name {
                use super::*;
                type W = (usize, Const<$n>);
                type Rows = (usize, usize, Const<$n>);
                pub fn plain(x: Of<Rows>, w: Of<W>) -> Of<(usize, usize, usize)> {
                    x.matmul(w.permute::<_, Axes2<1, 0>>())
                }
                pub fn taped(x: Taped<Rows>, w: Taped<W>) -> Taped<(usize, usize, usize)> {
                    x.matmul(w.permute::<_, Axes2<1, 0>>())
                }
            })+
        }
    };
}

/// Rows of one shard, looked up.
macro_rules! shards {
    ($($name:ident $v:literal $w:literal $e:literal;)+) => {
        pub mod shards {
            use super::*;
            $(pub mod $name {
                use super::*;
                type Shard = (Quotient<$v, $w>, Const<$e>);
                type Rows = (usize, usize, Const<$e>);
                pub fn plain(values: Vec<f32>, shape: Shard, ids: Ids) -> Of<Rows> {
                    let shard: Of<Shard> = Cpu::default().tensor_from_vec(values, shape);
                    shard.gather(ids)
                }
                pub fn taped(shard: &Of<Shard>, ids: Ids) -> (Taped<Rows>, Vec<f32>) {
                    let mut gradients = Gradients::<f32, Cpu>::leaky();
                    let _ = gradients.try_alloc_for(shard);
                    let rows = shard.clone().retaped::<OwnedTape<f32, Cpu>>().gather(ids);
                    (rows, gradients.get(shard).as_vec())
                }
            })+
        }
    };
}

/// Heads that are turned by their position.
macro_rules! turned_heads {
    ($($name:ident $n:literal)+) => {
        pub mod tables {
            use super::*;
            same_shape! { |x| x * 2.0, $($name: (usize, Const<$n>);)+ }
        }
        pub mod parts_of_tables {
            use super::*;
            $(pub mod $name {
                use super::*;
                type Table = (usize, Const<$n>);
                pub fn part(x: Of<Table>, from: std::ops::Range<usize>, to: Table) -> Of<Table> {
                    x.slice((from, ..)).reshape_like(&to)
                }
                pub fn one_for_all(x: Of<(Const<$n>,)>, shape: Table) -> Of<Table> {
                    x.broadcast_like::<Table, Axis<0>>(&shape)
                }
            })+
        }
        pub mod rows_of_heads {
            use super::*;
            over_rows! { $($name: (usize, usize, usize, Const<$n>), Axes2<0, 2>, (usize, Const<$n>);)+ }
        }
        pub mod batch_of_heads {
            use super::*;
            over_rows! { $($name: (usize, usize, usize, Const<$n>), Axis<0>, (usize, usize, Const<$n>);)+ }
        }
        pub mod all_of_heads {
            use super::*;
            over_rows! { $($name: (usize, usize, usize, Const<$n>), Axes3<0, 1, 2>, (Const<$n>,);)+ }
        }
        pub mod reshaped_heads {
            use super::*;
            reshapes! { $($name: (usize, usize, usize, Const<$n>), (usize, usize, usize, usize);)+ }
        }
        pub mod heads_of_rows {
            use super::*;
            reshapes! { $($name: (usize, usize, usize), (usize, usize, usize, Const<$n>);)+ }
        }
        pub mod turned {
            use super::*;
            $(pub mod $name {
                use super::*;
                type Heads = (usize, usize, usize, Const<$n>);
                type Turned = (Const<$n>, usize, usize, usize);
                pub fn turned(values: Vec<f32>, shape: Turned) -> Of<Heads> {
                    let x: Of<Turned> = Cpu::default().tensor_from_vec(values, shape);
                    x.permute::<_, Axes4<3, 2, 1, 0>>()
                }
                pub fn rolled(x: Of<Heads>, y: Taped<Heads>) -> (Of<Heads>, Taped<Heads>) {
                    (x.roll::<Axis<3>>(1), y.roll::<Axis<3>>(1))
                }
            })+
        }
    };
}

/// Rows of scores over a vocabulary.
macro_rules! scores {
    ($($name:ident $n:literal)+) => {
        pub mod classes {
            use super::*;
            along! { $($name: (usize, Const<$n>), Axis<1>, (usize,);)+ }
        }
        pub mod scores {
            use super::*;
            $(pub mod $name {
                use super::*;
                type Scores = (usize, Const<$n>);
                pub fn plain(x: Of<(usize, usize, Const<$n>)>, shape: Scores, ids: FlatIds) -> [Of<(usize,)>; 2] {
                    let x = x.reshape_like(&shape);
                    [x.clone().select(ids), x.max::<(usize,), Axis<1>>()]
                }
                pub fn taped(x: Taped<(usize, usize, Const<$n>)>, shape: Scores, ids: FlatIds) -> [Taped<(usize,)>; 2] {
                    let x = x.reshape_like(&shape) * 2.0;
                    [x.with_empty_tape().select(ids), x.max::<(usize,), Axis<1>>()]
                }
                pub fn some(x: Of<Scores>, y: Taped<Scores>, ids: FlatIds) -> (Of<Scores>, Taped<Scores>) {
                    let y = y.gather(ids.clone());
                    let all = || y.with_empty_tape();
                    let z = all().log_softmax::<Axis<1>>() + all().softmax::<Axis<1>>() + all().exp();
                    (x.gather(ids).softmax::<Axis<1>>(), z - y)
                }
            })+
        }
    };
}

model_rows! { w8 8 w12 12 w16 16 }
shards! {
    v12w1 12 1 5; v12w3 12 3 5; v12w4 12 4 2; v20w2 20 2 4; v70w7 70 7 67; v134w67 134 67 1; v65540w4 65540 4 1;
}
rows! { w1 1 w2 2 w3 3 w4 4 w5 5 w6 6 w7 7 w8 8 w9 9 w11 11 w12 12 w16 16 w64 64 w67 67 w70 70 w130 130 w1030 1030 }
heads! { w1 1 w2 2 w3 3 w4 4 w6 6 w7 7 w8 8 w12 12 w16 16 w32 32 w66 66 w67 67 w515 515 }
turned_heads! { w4 4 w6 6 w8 8 w12 12 w16 16 w66 66 }
scores! { w5 5 w6 6 w7 7 w11 11 }
matrices! {
    w1x1 1 1; w2x6 2 6; w2x7 2 7; w3x5 3 5; w3x8 3 8; w4x16 4 16; w5x3 5 3; w5x8 5 8; w5x12 5 12; w6x2 6 2; w6x12 6 12; w6x16 6 16; w7x2 7 2; w7x16 7 16; w8x3 8 3; w8x5 8 5; w8x12 8 12; w8x16 8 16; w9x67 9 67; w9x70 9 70; w11x12 11 12; w12x5 12 5; w12x6 12 6; w12x8 12 8; w12x11 12 11; w16x4 16 4; w16x6 16 6; w16x7 16 7; w16x8 16 8; w67x9 67 9; w67x70 67 70; w70x9 70 9; w70x67 70 67;
}
pub mod groups {
    use super::*;
    reshapes! {
        g_6_3: (usize, usize, Const<6>), (usize, usize, usize, Const<3>);
        g_6_2: (usize, usize, Const<6>), (usize, usize, usize, Const<2>);
        g_6_1: (usize, usize, Const<6>), (usize, usize, usize, Const<1>);
        g_6_6: (usize, usize, Const<6>), (usize, usize, usize, Const<6>);
        g_7_7: (usize, usize, Const<7>), (usize, usize, usize, Const<7>);
        g_64_32: (usize, usize, Const<64>), (usize, usize, usize, Const<32>);
        g_67_67: (usize, usize, Const<67>), (usize, usize, usize, Const<67>);
        g_130_2: (usize, usize, Const<130>), (usize, usize, usize, Const<2>);
        g_1030_515: (usize, usize, Const<1030>), (usize, usize, usize, Const<515>);
        g_8_4: (usize, usize, Const<8>), (usize, usize, usize, Const<4>);
        g_12_4: (usize, usize, Const<12>), (usize, usize, usize, Const<4>);
        g_12_6: (usize, usize, Const<12>), (usize, usize, usize, Const<6>);
        g_16_4: (usize, usize, Const<16>), (usize, usize, usize, Const<4>);
    }
}
same_shape! {
    |x| {
        let again = || x.with_empty_tape();
        again().square() + again().sqrt() / again().exp() - again().ln() * 2.0 + 1.0
    },
    f0: ();
    f1: (usize,);
    f2: (usize, usize);
    f3: (usize, usize, usize);
    f4: (usize, usize, usize, usize);
}
pub mod without_width {
    use super::*;
    along! {
        last2: (usize, usize), Axis<1>, (usize,);
        first3: (usize, usize, usize), Axis<0>, (usize, usize);
        last4: (usize, usize, usize, usize), Axis<3>, (usize, usize, usize);
        first4: (usize, usize, usize, usize), Axis<0>, (usize, usize, usize);
        heads: (usize, usize, usize, usize, usize), Axis<2>, (usize, usize, usize, usize);
        inner: (usize, usize, usize, usize, usize), Axis<3>, (usize, usize, usize, usize);
    }
}
pub mod reshaped_without_width {
    use super::*;
    reshapes! {
        flat: (usize, usize, usize), (usize, usize);
        heads: (usize, usize, usize, usize, usize), (usize, usize, usize, usize);
        rows: (usize, usize, usize), (usize, usize, usize, usize);
        table: (usize, usize), (usize, usize);
    }
}

type One = (usize,);
type Two = (usize, usize);
type Four = (usize, usize, usize, usize);
pub fn tables(x: Of<Two>, y: Taped<Two>, ids: FlatIds) -> (Of<Two>, Taped<Two>) {
    let x = x.slice((0..1, ..)).permute::<Two, Axes2<1, 0>>();
    let y = y.slice((0..1, ..)).permute::<Two, Axes2<1, 0>>();
    (x.gather(ids.clone()), y.gather(ids))
}
pub fn one_of_each(x: Of<Two>, y: Taped<Two>, ids: FlatIds) -> (Of<One>, Taped<One>) {
    let most = y.with_empty_tape().max::<One, Axis<1>>();
    (x.clone().select(ids.clone()) + x.max::<One, Axis<1>>(), y.select(ids) + most)
}
pub fn soft(x: Of<Two>, y: Taped<Two>) -> (Of<Two>, Taped<Two>) {
    let taped = y.with_empty_tape().softmax::<Axis<1>>();
    let soft = x.clone().softmax::<Axis<1>>();
    (x.log_softmax::<Axis<1>>() + soft, y.log_softmax::<Axis<1>>() + taped)
}
pub fn of_scores(x: Of<Four>, y: Taped<Four>) -> (Of<Four>, Taped<Four>) {
    let x = (x.relu() / 2.0).clamp(0.0, 1.0).roll::<Axis<3>>(1);
    (x, (y.relu() / 2.0).clamp(0.0, 1.0).roll::<Axis<3>>(1))
}
pub fn of_tables(x: Of<Two>, y: Taped<Two>, shape: Four) -> (Of<Four>, Taped<Four>) {
    let wide = x.clone().broadcast_like::<Four, Axes2<0, 2>>(&shape);
    let taped = y.with_empty_tape().broadcast_like::<Four, Axes2<0, 1>>(&shape);
    (
        x.broadcast_like::<Four, Axes2<0, 1>>(&shape) + wide,
        y.broadcast_like::<Four, Axes2<0, 2>>(&shape) + taped,
    )
}
pub fn joined(x: Of<Four>, y: Of<Four>) -> Of<Four> {
    (x, y).concat_along(Axis::<1>)
}
pub fn losses(x: Of<()>, y: Taped<()>, z: Taped<(usize,)>) -> (Of<()>, Taped<()>) {
    (x / 2.0, y / 2.0 + z.sum::<(), Axis<0>>())
}
pub fn turned_heads(x: Of<Four>) -> Of<Four> {
    x.permute::<Four, Axes4<0, 2, 1, 3>>()
        .permute::<Four, Axes4<0, 2, 3, 1>>()
        .permute::<Four, Axes4<0, 1, 3, 2>>()
}
pub fn turned_heads_taped(x: Taped<Four>) -> Taped<Four> {
    x.permute::<Four, Axes4<0, 2, 1, 3>>()
        .permute::<Four, Axes4<0, 2, 3, 1>>()
        .permute::<Four, Axes4<0, 1, 3, 2>>()
}
pub fn all_scores(
    x: Of<Four>,
    y: Of<Four>,
    z: Taped<Four>,
    w: Taped<Four>,
) -> (Of<Four>, Taped<Four>) {
    (x.matmul(y).softmax::<Axis<3>>(), z.matmul(w).softmax::<Axis<3>>())
}
pub fn masked(
    of: Tensor<(usize, usize), bool, Cpu>,
    shape: Four,
    x: Of<Four>,
    y: Taped<Four>,
) -> (Of<Four>, Taped<Four>) {
    let of = of.broadcast_like::<Four, Axes2<0, 1>>(&shape);
    (of.clone().choose(x.clone(), x.clone()), of.choose(y, x))
}
