//! Tensor operations of dfdx at the sizes that are asked, compiled once.
//!
//! dfdx's functions are generic, and whoever calls one compiles it: each submission would compile them anew. rustc takes a
//! function that a crate below has compiled already, so the program of a submission is linked with this crate. Nothing here is
//! ever called: it is a table of operations by shapes, and it says nothing of what a task needs.

use tensor::*;

type Of<S> = Tensor<S, f32, Cpu>;
type Taped<S> = Tensor<S, f32, Cpu, OwnedTape<f32, Cpu>>;

/// What leaves a shape as it is.
macro_rules! alike {
    ($of:ident, $name:ident, $shape:ty) => {
        pub fn $name(x: $of<$shape>, y: $of<$shape>, shape: $shape) -> $of<$shape> {
            let again = || x.with_empty_tape();
            let z = again().square() + again().sqrt()
                - again().exp() * again().ln() / again().sigmoid();
            let z = (-z * 2.0 + 1.0 - 3.0) / 2.0;
            let _: Vec<f32> = z.as_vec();
            let _ = z.shape() == &shape;
            z.reshape_like(&shape) + y
        }
    };
}
macro_rules! same_shape {
    ($($name:ident: $shape:ty;)+) => {$(
        pub mod $name {
            use super::*;
            alike!(Of, plain, $shape);
            alike!(Taped, taped, $shape);
            pub fn others(x: Of<$shape>, y: Taped<$shape>, shape: $shape, values: Vec<f32>) -> (Taped<$shape>, Of<$shape>) {
                let device = Cpu::default();
                let new: Of<$shape> = device.tensor_from_vec(values, shape);
                let zeros: Of<$shape> = device.zeros_like(&shape);
                let z = y * x.clone() + new.leaky_trace() - zeros.retaped::<OwnedTape<f32, Cpu>>();
                let (w, tape) = z.split_tape();
                (w.clone().put_tape(tape), x * w)
            }
            pub fn backward(x: Taped<$shape>, y: &Of<$shape>) -> Of<$shape> {
                let grads = x.sum::<Rank0, _>().backward();
                grads.get(y)
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
                let small = again().sum::<$small, $axes>() + again().mean::<$small, $axes>() - again().max::<$small, $axes>();
                (small.clone().broadcast_like::<$large, $axes>(&shape), small)
            }
            pub fn taped(x: Taped<$large>, shape: $large) -> (Taped<$large>, Taped<$small>) {
                let again = || x.with_empty_tape();
                let small = again().sum::<$small, $axes>() + again().mean::<$small, $axes>() - again().max::<$small, $axes>();
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
    ($($name:ident: $n:literal, $m:literal;)+) => {
        same_shape! { $($name: (Const<$n>, Const<$m>);)+ }
        pub mod products {
            use super::*;
            $(pub mod $name {
                use super::*;
                type W = (Const<$n>, Const<$m>);
                type Ids = Tensor<(usize, usize), usize, Cpu>;
                type FlatIds = Tensor<(usize,), usize, Cpu>;
                pub fn plain(x: Of<(usize, usize, Const<$n>)>, w: Of<W>) -> Of<(usize, usize, Const<$m>)> { x.matmul(w) }
                pub fn taped(x: Taped<(usize, usize, Const<$n>)>, w: Taped<W>) -> Taped<(usize, usize, Const<$m>)> { x.matmul(w) }
                pub fn mixed(x: Taped<(usize, usize, Const<$n>)>, w: Of<W>) -> Taped<(usize, usize, Const<$m>)> { x.matmul(w) }
                pub fn flat(x: Of<(usize, Const<$n>)>, w: Of<W>) -> Of<(usize, Const<$m>)> { x.matmul(w) }
                pub fn outer(x: Of<(Const<$n>, usize)>, y: Of<(usize, Const<$m>)>) -> Of<W> { x.matmul(y) }
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

/// All that is done at a width.
macro_rules! widths {
    ($($three:ident $four:ident $two:ident $one:ident $n:literal)+) => {
        same_shape! {
            $($three: (usize, usize, Const<$n>); $four: (usize, usize, usize, Const<$n>); $two: (usize, Const<$n>); $one: (Const<$n>,);)+
        }
        pub mod sums { use super::*; along! {
            $($three: (usize, usize, Const<$n>), Axis<2>, (usize, usize);
              $four: (usize, usize, usize, Const<$n>), Axis<3>, (usize, usize, usize);
              $one: (usize, Const<$n>), Axis<1>, (usize,);)+
        } }
        pub mod all_positions { use super::*; over_rows! { $($two: (usize, usize, Const<$n>), Axes2<0, 1>, (Const<$n>,);)+ } }
        pub mod rows { use super::*; over_rows! {
            $($three: (usize, usize, Const<$n>), Axis<0>, (usize, Const<$n>);
              $four: (usize, usize, usize, Const<$n>), Axes2<0, 2>, (usize, Const<$n>);
              $two: (usize, usize, usize, Const<$n>), Axis<0>, (usize, usize, Const<$n>);
              $one: (usize, Const<$n>), Axis<0>, (Const<$n>,);)+
        } }
        pub mod all_rows { use super::*; over_rows! { $($four: (usize, usize, usize, Const<$n>), Axes3<0, 1, 2>, (Const<$n>,);)+ } }
        pub mod reshaped { use super::*; reshapes! {
            $($three: (usize, usize, Const<$n>), (usize, usize, usize, usize);
              $four: (usize, usize, usize, Const<$n>), (usize, usize, usize, usize);
              $two: (usize, usize, Const<$n>), (usize, Const<$n>);
              $one: (usize, usize, usize), (usize, usize, Const<$n>);)+
        } }
        pub mod others { use super::*; $(pub mod $three {
            use super::*;
            type Three = (usize, usize, Const<$n>);
            type Four = (usize, usize, usize, Const<$n>);
            pub fn turned(x: Of<(Const<$n>, usize, usize)>, y: Of<(Const<$n>, usize, usize, usize)>) -> (Of<Three>, Of<Four>) {
                (x.permute::<_, Axes3<2, 1, 0>>(), y.permute::<_, Axes4<3, 2, 1, 0>>())
            }
            pub fn flat(x: Of<(usize, Const<$n>)>, y: Taped<(usize, Const<$n>)>) -> (Of<(Const<$n>, usize)>, Taped<(Const<$n>, usize)>) {
                (x.permute(), y.permute())
            }
            pub fn made(device: &Cpu, values: Vec<f32>, x: (Const<$n>, usize, usize), y: (Const<$n>, usize, usize, usize)) -> (Of<(Const<$n>, usize, usize)>, Of<(Const<$n>, usize, usize, usize)>) {
                (device.tensor_from_vec(values.clone(), x), device.tensor_from_vec(values, y))
            }
            pub fn chosen(of: Tensor<(usize, usize), bool, Cpu>, shape: Three, x: Of<Three>, y: Taped<Three>) -> (Of<Three>, Taped<Three>) {
                let of = of.broadcast_like::<Three, Axis<2>>(&shape);
                (of.clone().choose(x.clone(), x.clone()), of.choose(y, x))
            }
            pub fn rolled(x: Of<Four>, y: Taped<Four>) -> (Of<Four>, Taped<Four>) { (x.roll::<Axis<3>>(1), y.roll::<Axis<3>>(1)) }
            pub fn half(x: Of<Three>, y: Of<Four>) -> (Of<Three>, Of<Four>) {
                (x.to_dtype::<f16>().to_dtype::<f32>(), y.to_dtype::<f16>().to_dtype::<f32>())
            }
            pub fn selected(x: Of<(usize, Const<$n>)>, y: Taped<(usize, Const<$n>)>, ids: Tensor<(usize,), usize, Cpu>) -> Taped<(usize,)> {
                y.select(ids.clone()) + x.select(ids)
            }
        })+ }
    };
}
widths! {
    b3_1 b4_1 b2_1 b1_1 1
    b3_2 b4_2 b2_2 b1_2 2
    b3_3 b4_3 b2_3 b1_3 3
    b3_4 b4_4 b2_4 b1_4 4
    b3_5 b4_5 b2_5 b1_5 5
    b3_6 b4_6 b2_6 b1_6 6
    b3_7 b4_7 b2_7 b1_7 7
    b3_8 b4_8 b2_8 b1_8 8
    b3_9 b4_9 b2_9 b1_9 9
    b3_11 b4_11 b2_11 b1_11 11
    b3_12 b4_12 b2_12 b1_12 12
    b3_16 b4_16 b2_16 b1_16 16
    b3_32 b4_32 b2_32 b1_32 32
    b3_64 b4_64 b2_64 b1_64 64
    b3_66 b4_66 b2_66 b1_66 66
    b3_67 b4_67 b2_67 b1_67 67
    b3_70 b4_70 b2_70 b1_70 70
    b3_130 b4_130 b2_130 b1_130 130
    b3_515 b4_515 b2_515 b1_515 515
    b3_1030 b4_1030 b2_1030 b1_1030 1030
}
matrices! {
    w_1_1: 1, 1;
    w_2_6: 2, 6;
    w_2_7: 2, 7;
    w_3_5: 3, 5;
    w_3_8: 3, 8;
    w_4_16: 4, 16;
    w_5_3: 5, 3;
    w_5_8: 5, 8;
    w_5_12: 5, 12;
    w_6_2: 6, 2;
    w_6_12: 6, 12;
    w_6_16: 6, 16;
    w_7_2: 7, 2;
    w_7_16: 7, 16;
    w_8_3: 8, 3;
    w_8_5: 8, 5;
    w_8_12: 8, 12;
    w_8_16: 8, 16;
    w_9_67: 9, 67;
    w_9_70: 9, 70;
    w_11_12: 11, 12;
    w_12_5: 12, 5;
    w_12_6: 12, 6;
    w_12_8: 12, 8;
    w_12_11: 12, 11;
    w_16_4: 16, 4;
    w_16_6: 16, 6;
    w_16_7: 16, 7;
    w_16_8: 16, 8;
    w_67_9: 67, 9;
    w_67_70: 67, 70;
    w_70_9: 70, 9;
    w_70_67: 70, 67;
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
    }
}

type Four = (usize, usize, usize, usize);
pub fn heads(x: Of<Four>) -> Of<Four> {
    x.permute::<Four, Axes4<0, 2, 1, 3>>()
        .permute::<Four, Axes4<0, 2, 3, 1>>()
        .permute::<Four, Axes4<0, 1, 3, 2>>()
}
pub fn heads_taped(x: Taped<Four>) -> Taped<Four> {
    x.permute::<Four, Axes4<0, 2, 1, 3>>()
        .permute::<Four, Axes4<0, 2, 3, 1>>()
        .permute::<Four, Axes4<0, 1, 3, 2>>()
}
pub fn scores(x: Of<Four>, y: Of<Four>, z: Taped<Four>, w: Taped<Four>) -> (Of<Four>, Taped<Four>) {
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
