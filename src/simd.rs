//! Vectors of the widest instruction set of the machine, or of a narrower one on request.

use std::ops::{Deref, DerefMut};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

use bytemuck::Pod;
use pulp::{Simd, WithSimd};

use crate::error::{Error, Result};
use crate::real::Real;

/// Instruction sets for which kernels are compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Instructions {
    /// Scalar code, on any machine.
    Portable,
    /// NEON, on 64-bit ARM.
    Neon,
    /// AVX2 and FMA.
    Avx2,
    /// AVX-512.
    Avx512,
}

/// The forced instruction set as a number, or [`NONE`].
static FORCED: AtomicU8 = AtomicU8::new(NONE);
const NONE: u8 = u8::MAX;

impl Instructions {
    /// All instruction sets, widest last.
    pub const ALL: [Self; 4] = [Self::Portable, Self::Neon, Self::Avx2, Self::Avx512];

    /// All instruction sets that this machine supports, widest last.
    pub fn available() -> Vec<Self> {
        Self::ALL.into_iter().filter(|set| set.is_available()).collect()
    }

    /// The widest supported instruction set, or the one set by [`Instructions::force`].
    pub fn widest() -> Self {
        static WIDEST: OnceLock<Instructions> = OnceLock::new();
        let forced = Self::ALL.into_iter().find(|&set| set as u8 == FORCED.load(Ordering::Relaxed));
        forced.unwrap_or_else(|| *WIDEST.get_or_init(|| Self::available().into_iter().max().unwrap_or(Self::Portable)))
    }

    /// Makes the kernels of this process use one instruction set; `None` returns to the widest. Results may differ
    /// between instruction sets in their last bits, so tests compare each with itself.
    ///
    /// # Errors
    /// [`Error::NotSupported`] if this machine does not support it.
    pub fn force(set: Option<Self>) -> Result<()> {
        if let Some(missing) = set.filter(|set| !set.is_available()) {
            let reason = "this machine does not support it";
            return Err(Error::not_supported(
                "instructions",
                format!("{missing:?}"),
                reason,
                "an available instruction set",
            ));
        }
        FORCED.store(set.map_or(NONE, |set| set as u8), Ordering::Relaxed);
        Ok(())
    }

    /// Whether this machine supports it.
    pub fn is_available(self) -> bool {
        match self {
            Self::Portable => true,
            #[cfg(target_arch = "aarch64")]
            Self::Neon => pulp::aarch64::Neon::try_new().is_some(),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => pulp::x86::V3::try_new().is_some(),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => pulp::x86::V4::try_new().is_some(),
            #[allow(unreachable_patterns, reason = "what other machines have")]
            _ => false,
        }
    }

    /// Runs `work` compiled for this instruction set, or for the portable one if the machine does not support it. Code
    /// is compiled this way only if it is inlined into `work`: loops and always-inlined functions are, closures are
    /// not.
    pub fn run<W: WithSimd>(self, work: W) -> W::Output {
        match self {
            #[cfg(target_arch = "aarch64")]
            Self::Neon => {
                if let Some(simd) = pulp::aarch64::Neon::try_new() {
                    return Simd::vectorize(simd, work);
                }
            }
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => {
                if let Some(simd) = pulp::x86::V4::try_new() {
                    return Simd::vectorize(simd, work);
                }
            }
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => {
                if let Some(simd) = pulp::x86::V3::try_new() {
                    return Simd::vectorize(simd, work);
                }
            }
            _ => {}
        }
        Simd::vectorize(pulp::Scalar::new(), work)
    }
}

/// Number of vectors of rows that kernels process together: with eight rows of a factor they fill the registers of
/// AVX-512.
pub const VECTORS: usize = 3;

/// The vectors of rows that are processed together.
pub type Vectors<S, F> = [<F as Scalar>::Vector<S>; VECTORS];

/// Number of rows of [`Vectors`].
#[inline(always)]
pub const fn rows_of_part<S: Simd, F: Scalar>() -> usize {
    size_of::<Vectors<S, F>>() / size_of::<F>()
}

/// Number of [`Vectors`] in a group.
#[inline(always)]
pub const fn parts_of_group<S: Simd, F: Scalar>() -> usize {
    F::GROUP / rows_of_part::<S, F>()
}

/// Numbers that can be stored in vectors.
pub trait Scalar: Real + Pod {
    /// A vector.
    type Vector<S: Simd>: Pod;
    /// The result of a comparison of vectors.
    type Mask<S: Simd>: Copy;

    /// Number of rows side by side in a tile: [`VECTORS`] vectors of the widest kind, a multiple of any narrower.
    const GROUP: usize;

    /// The same number in all lanes.
    fn splat<S: Simd>(simd: S, value: Self) -> Self::Vector<S>;
    /// `a * b + c`, rounded once where the instruction set can.
    fn mul_add<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>, c: Self::Vector<S>) -> Self::Vector<S>;
    /// `a - b`.
    fn minus<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    /// Lanes where `a > b`.
    fn greater<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Mask<S>;
    /// Lanes where `a >= b`.
    fn at_least<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Mask<S>;
    /// Lanes where `a == b`.
    fn equal<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Mask<S>;
    /// Lanes where both masks hold.
    fn both<S: Simd>(simd: S, a: Self::Mask<S>, b: Self::Mask<S>) -> Self::Mask<S>;
    /// Lanes where either mask holds.
    fn either<S: Simd>(simd: S, a: Self::Mask<S>, b: Self::Mask<S>) -> Self::Mask<S>;
    /// Whether the mask holds in any lane.
    fn any<S: Simd>(simd: S, mask: Self::Mask<S>) -> bool;
    /// One bit per lane where the mask holds; the first lane is the lowest bit.
    fn bits<S: Simd>(simd: S, mask: Self::Mask<S>) -> u32;
    /// The larger of two in each lane.
    fn larger<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    /// The smaller of two in each lane.
    fn smaller<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    /// The largest number in a vector.
    fn maximum<S: Simd>(simd: S, values: Self::Vector<S>) -> Self;
    /// `a` where the mask holds and `b` elsewhere.
    fn select<S: Simd>(simd: S, mask: Self::Mask<S>, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
}

/// Numbers aligned for a vector.
#[repr(C, align(64))]
struct Aligned<F, const N: usize>([F; N]);

/// Powers of two, one bit per lane.
static SINGLE_POWERS: Aligned<f32, 16> = Aligned([
    1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0, 8192.0, 16384.0, 32768.0,
]);
static DOUBLE_POWERS: Aligned<f64, 8> = Aligned([1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0]);

macro_rules! impl_lanes {
    (
        $t:ident, $widest:literal, $powers:ident, $vector:ident, $mask:ident, $lanes:ident, $splat:ident,
        $mul_add:ident, $sub:ident, $greater:ident, $at_least:ident, $equal:ident, $and:ident, $or:ident,
        $first:ident, $select:ident, $sum:ident, $max:ident, $min:ident, $maximum:ident
    ) => {
        impl Scalar for $t {
            type Vector<S: Simd> = S::$vector;
            type Mask<S: Simd> = S::$mask;

            const GROUP: usize = VECTORS * $widest;

            #[inline(always)]
            fn splat<S: Simd>(simd: S, value: Self) -> Self::Vector<S> {
                simd.$splat(value)
            }
            #[inline(always)]
            fn mul_add<S: Simd>(
                simd: S,
                a: Self::Vector<S>,
                b: Self::Vector<S>,
                c: Self::Vector<S>,
            ) -> Self::Vector<S> {
                simd.$mul_add(a, b, c)
            }
            #[inline(always)]
            fn minus<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S> {
                simd.$sub(a, b)
            }
            #[inline(always)]
            fn greater<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Mask<S> {
                simd.$greater(a, b)
            }
            #[inline(always)]
            fn at_least<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Mask<S> {
                simd.$at_least(a, b)
            }
            #[inline(always)]
            fn equal<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Mask<S> {
                simd.$equal(a, b)
            }
            #[inline(always)]
            fn both<S: Simd>(simd: S, a: Self::Mask<S>, b: Self::Mask<S>) -> Self::Mask<S> {
                simd.$and(a, b)
            }
            #[inline(always)]
            fn either<S: Simd>(simd: S, a: Self::Mask<S>, b: Self::Mask<S>) -> Self::Mask<S> {
                simd.$or(a, b)
            }
            #[inline(always)]
            fn any<S: Simd>(simd: S, mask: Self::Mask<S>) -> bool {
                simd.$first(mask) < S::$lanes
            }
            #[inline(always)]
            fn bits<S: Simd>(simd: S, mask: Self::Mask<S>) -> u32 {
                // Some masks are already bits.
                if size_of::<S::$mask>() == size_of::<u16>() {
                    return u32::from(bytemuck::cast::<S::$mask, u16>(mask));
                }
                if size_of::<S::$mask>() == size_of::<u8>() && S::$lanes == 8 {
                    return u32::from(bytemuck::cast::<S::$mask, u8>(mask));
                }
                // A sum of distinct powers of two below 2^16 is exact.
                let powers: &[S::$vector] = bytemuck::cast_slice(&$powers.0);
                let chosen = simd.$select(mask, powers[0], simd.$splat(0.0));
                simd.$sum(chosen) as u32
            }
            #[inline(always)]
            fn larger<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S> {
                simd.$max(a, b)
            }
            #[inline(always)]
            fn smaller<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S> {
                simd.$min(a, b)
            }
            #[inline(always)]
            fn maximum<S: Simd>(simd: S, values: Self::Vector<S>) -> Self {
                simd.$maximum(values)
            }
            #[inline(always)]
            fn select<S: Simd>(
                simd: S,
                mask: Self::Mask<S>,
                a: Self::Vector<S>,
                b: Self::Vector<S>,
            ) -> Self::Vector<S> {
                simd.$select(mask, a, b)
            }
        }
    };
}

impl_lanes!(
    f32,
    16,
    SINGLE_POWERS,
    f32s,
    m32s,
    F32_LANES,
    splat_f32s,
    mul_add_e_f32s,
    sub_f32s,
    greater_than_f32s,
    greater_than_or_equal_f32s,
    equal_f32s,
    and_m32s,
    or_m32s,
    first_true_m32s,
    select_f32s,
    reduce_sum_f32s,
    max_f32s,
    min_f32s,
    reduce_max_f32s
);
impl_lanes!(
    f64,
    8,
    DOUBLE_POWERS,
    f64s,
    m64s,
    F64_LANES,
    splat_f64s,
    mul_add_e_f64s,
    sub_f64s,
    greater_than_f64s,
    greater_than_or_equal_f64s,
    equal_f64s,
    and_m64s,
    or_m64s,
    first_true_m64s,
    select_f64s,
    reduce_sum_f64s,
    max_f64s,
    min_f64s,
    reduce_max_f64s
);

/// Numbers aligned to a cache line, so that no vector straddles two lines.
#[derive(Debug, Default)]
pub struct Lines<F> {
    values: Vec<F>,
    start: usize,
    len: usize,
}

/// Size in bytes of a cache line, and of the widest vector.
const LINE: usize = 64;

impl<F: Scalar> Lines<F> {
    /// Resets to `len` copies of `value`.
    pub fn reset(&mut self, len: usize, value: F) {
        self.values.clear();
        self.values.resize(len + LINE / size_of::<F>(), value);
        self.start = self.values.as_ptr().align_offset(LINE).min(LINE / size_of::<F>());
        self.len = len;
    }

    /// Resizes to `len` numbers without clearing them. The caller must write each before reading it.
    pub fn resize(&mut self, len: usize) {
        if self.values.len() < self.start + len {
            self.reset(len, F::ZERO);
        }
        self.len = len;
    }
}

impl<F> Deref for Lines<F> {
    type Target = [F];

    fn deref(&self) -> &[F] {
        &self.values[self.start..][..self.len]
    }
}

impl<F> DerefMut for Lines<F> {
    fn deref_mut(&mut self) -> &mut [F] {
        &mut self.values[self.start..][..self.len]
    }
}

/// Copies column `column` of rows of `D` numbers. When inlined with constant arguments it is a few shuffles.
#[inline(always)]
pub fn copy_column<F: Copy, const D: usize>(rows: &[F], column: usize, out: &mut [F]) {
    let (rows, _) = rows.as_chunks::<D>();
    for (value, row) in out.iter_mut().zip(rows) {
        *value = row[column];
    }
}

/// Sums in eight independent parts, which hide latency. Inlined, so that it is compiled with the surrounding loop.
#[inline(always)]
pub fn sum(values: &[f64]) -> f64 {
    let mut parts = [0.0; 8];
    let (eights, rest) = values.as_chunks::<8>();
    for eight in eights {
        for (part, value) in parts.iter_mut().zip(eight) {
            *part += value;
        }
    }
    parts.iter().chain(rest).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_portable_set_is_always_there() {
        assert_eq!(Instructions::available()[0], Instructions::Portable);
        assert!(Instructions::widest().is_available());
    }

    #[test]
    fn lines_begin_with_a_cache_line() {
        let mut lines = Lines::default();
        for len in [0, 1, 5, 1000] {
            lines.reset(len, 0.5_f32);
            assert_eq!(&lines[..], vec![0.5; len]);
            assert_eq!(lines.as_ptr() as usize % LINE, 0);
        }
        for len in [7, 1000, 3000, 2] {
            lines.resize(len);
            assert_eq!((lines.len(), lines.as_ptr() as usize % LINE), (len, 0));
        }
    }

    #[test]
    fn a_sum_leaves_nothing_out() {
        for n in [0_u32, 1, 7, 8, 9, 100] {
            let values: Vec<f64> = (0..n).map(f64::from).collect();
            assert_eq!(sum(&values), f64::from(n * n.saturating_sub(1) / 2));
        }
    }
}
