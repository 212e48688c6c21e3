//! Loops that use the widest registers of the processor at hand.

/// Defines functions over slices that are compiled several times: for the oldest processor of its kind, as the rest of
/// the program, and for newer ones with wider registers. A call takes what the processor has. Two processors may
/// therefore differ in last bits, as they do in every product of matrices.
///
/// Each function has one lifetime and one float type, `fn name<'a, W>(..) -> ..`. What it calls must be inlined.
macro_rules! in_wide_registers {
    ($($(#[$note:meta])* $vis:vis fn $name:ident<$life:lifetime, $W:ident>(
        $($arg:ident: $type:ty),* $(,)?
    ) -> $out:ty $body:block)*) => {$(
        $(#[$note])*
        $vis fn $name<$life, $W: $crate::tensor::Float<Wide = $W>>($($arg: $type),*) -> $out {
            struct Call<$life, $W: $crate::tensor::Float<Wide = $W>> {
                $($arg: $type,)*
                of: std::marker::PhantomData<&$life $W>,
            }
            impl<$life, $W: $crate::tensor::Float<Wide = $W>> pulp::NullaryFnOnce for Call<$life, $W> {
                type Output = $out;

                #[inline(always)]
                fn call(self) -> $out {
                    let Self { $($arg,)* .. } = self;
                    $body
                }
            }
            pulp::Arch::new().dispatch(Call { $($arg,)* of: std::marker::PhantomData })
        }
    )*};
}
pub(crate) use in_wide_registers;
