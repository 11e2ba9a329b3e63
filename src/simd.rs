//! Vectors of the widest instruction set of the machine, or of a narrower one that is asked for.

use std::ops::{Deref, DerefMut};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

use bytemuck::Pod;
use pulp::{Simd, WithSimd};

use crate::error::{Error, Result};
use crate::real::Real;

/// Instruction sets that kernels are compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Instructions {
    /// Plain numbers, on any machine.
    Portable,
    /// NEON, on 64-bit ARM.
    Neon,
    /// AVX2 and FMA.
    Avx2,
    /// AVX-512.
    Avx512,
}

/// The instruction set that is forced, as a number, or [`NONE`].
static FORCED: AtomicU8 = AtomicU8::new(NONE);
const NONE: u8 = u8::MAX;

impl Instructions {
    /// All of them, the widest last.
    pub const ALL: [Self; 4] = [Self::Portable, Self::Neon, Self::Avx2, Self::Avx512];

    /// All that this machine has, the widest last.
    pub fn available() -> Vec<Self> {
        Self::ALL.into_iter().filter(|set| set.is_available()).collect()
    }

    /// The widest that this machine has, or the one that [`Instructions::force`] names.
    pub fn widest() -> Self {
        static WIDEST: OnceLock<Instructions> = OnceLock::new();
        let forced = Self::ALL.into_iter().find(|&set| set as u8 == FORCED.load(Ordering::Relaxed));
        forced.unwrap_or_else(|| *WIDEST.get_or_init(|| Self::available().into_iter().max().unwrap_or(Self::Portable)))
    }

    /// Makes the kernels of this process use one instruction set, or the widest again: results may differ between them
    /// in their last bits, and tests compare each with itself.
    ///
    /// # Errors
    /// [`Error::NotSupported`] where this machine does not have it.
    pub fn force(set: Option<Self>) -> Result<()> {
        if let Some(missing) = set.filter(|set| !set.is_available()) {
            let reason = "this machine does not have it";
            return Err(Error::not_supported("instructions", format!("{missing:?}"), reason, "one that is available"));
        }
        FORCED.store(set.map_or(NONE, |set| set as u8), Ordering::Relaxed);
        Ok(())
    }

    /// Whether this machine has it.
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

    /// Runs `work` compiled for this instruction set; for the portable one where the machine does not have it. What is
    /// to be compiled so must be inlined into `work`: loops and functions that are always inlined are, closures are
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

/// Vectors of rows that kernels work on together: with eight rows of a factor they fill the registers of AVX-512.
pub const VECTORS: usize = 3;

/// Numbers that come in vectors.
pub trait Scalar: Real + Pod {
    /// A vector.
    type Vector<S: Simd>: Pod;
    /// The result of a comparison of vectors.
    type Mask<S: Simd>: Copy;

    /// Rows that stand side by side in a tile: [`VECTORS`] vectors of the widest kind, a multiple of any narrower.
    const GROUP: usize;

    /// The same number in all lanes.
    fn splat<S: Simd>(simd: S, value: Self) -> Self::Vector<S>;
    /// `a * b + c`, rounded once where the instruction set can.
    fn mul_add<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>, c: Self::Vector<S>) -> Self::Vector<S>;
    /// `a - b`.
    fn minus<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    /// Where `a > b`.
    fn greater<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Mask<S>;
    /// Where `a >= b`.
    fn at_least<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Mask<S>;
    /// Where `a == b`.
    fn equal<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Mask<S>;
    /// Where both hold.
    fn both<S: Simd>(simd: S, a: Self::Mask<S>, b: Self::Mask<S>) -> Self::Mask<S>;
    /// Where either holds.
    fn either<S: Simd>(simd: S, a: Self::Mask<S>, b: Self::Mask<S>) -> Self::Mask<S>;
    /// Whether it holds anywhere.
    fn any<S: Simd>(simd: S, mask: Self::Mask<S>) -> bool;
    /// A bit for every lane where it holds, the first lane's the lowest.
    fn bits<S: Simd>(simd: S, mask: Self::Mask<S>) -> u32;
    /// The larger of two in each lane.
    fn larger<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    /// The largest number of a vector.
    fn maximum<S: Simd>(simd: S, values: Self::Vector<S>) -> Self;
    /// `a` where it holds and `b` elsewhere.
    fn select<S: Simd>(simd: S, mask: Self::Mask<S>, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
}

/// Numbers of a vector.
#[repr(C, align(64))]
struct Aligned<F, const N: usize>([F; N]);

/// Powers of two, a bit for every lane.
static SINGLE_POWERS: Aligned<f32, 16> = Aligned([
    1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0, 8192.0, 16384.0, 32768.0,
]);
static DOUBLE_POWERS: Aligned<f64, 8> = Aligned([1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0]);

macro_rules! impl_lanes {
    (
        $t:ident, $widest:literal, $powers:ident, $vector:ident, $mask:ident, $lanes:ident, $splat:ident,
        $mul_add:ident, $sub:ident, $greater:ident, $at_least:ident, $equal:ident, $and:ident, $or:ident,
        $first:ident, $select:ident, $sum:ident, $max:ident, $maximum:ident
    ) => {
        #[allow(clippy::inline_always, reason = "a call would leave the instruction set")]
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
                // Some masks are bits already.
                if size_of::<S::$mask>() == size_of::<u16>() {
                    return u32::from(bytemuck::cast::<S::$mask, u16>(mask));
                }
                if size_of::<S::$mask>() == size_of::<u8>() && S::$lanes == 8 {
                    return u32::from(bytemuck::cast::<S::$mask, u8>(mask));
                }
                // The sum of different powers of two below 2^16 is exact.
                let powers: &[S::$vector] = bytemuck::cast_slice(&$powers.0);
                let chosen = simd.$select(mask, powers[0], simd.$splat(0.0));
                simd.$sum(chosen) as u32
            }
            #[inline(always)]
            fn larger<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S> {
                simd.$max(a, b)
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
    reduce_max_f64s
);

/// Numbers that begin where a cache line begins, so that no vector of theirs straddles two.
#[derive(Debug, Default)]
pub struct Lines<F> {
    values: Vec<F>,
    start: usize,
    len: usize,
}

/// Bytes of a cache line, and of the widest vector.
const LINE: usize = 64;

impl<F: Scalar> Lines<F> {
    /// Becomes `len` times `value`.
    pub fn reset(&mut self, len: usize, value: F) {
        self.values.clear();
        self.values.resize(len + LINE / size_of::<F>(), value);
        self.start = self.values.as_ptr().align_offset(LINE).min(LINE / size_of::<F>());
        self.len = len;
    }

    /// Resizes to `len` numbers without clearing them. The caller writes each before it is read.
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

/// Copies column `column` of rows of `D` numbers; inlined where both are constants it is a few shuffles.
#[allow(clippy::inline_always, reason = "compiled once for each instruction set")]
#[inline(always)]
pub fn copy_column<F: Copy, const D: usize>(rows: &[F], column: usize, out: &mut [F]) {
    let (rows, _) = rows.as_chunks::<D>();
    for (value, row) in out.iter_mut().zip(rows) {
        *value = row[column];
    }
}

/// The sum in eight parts, which do not wait for each other. Inlined, so that it is compiled with the loop around it.
#[allow(clippy::inline_always, reason = "compiled once for each instruction set")]
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
