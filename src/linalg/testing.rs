//! Helpers for the unit tests of this module.

use crate::real::Real;

/// Pseudo-random values in [-0.5, 0.5), determined by the seed.
pub fn values<F: Real>(seed: u64, n: usize) -> Vec<F> {
    let mut state = seed;
    (0..n)
        .map(|_| {
            // Knuth's linear congruential generator (MMIX).
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            F::from_f64((state >> 11) as f64 / (1u64 << 53) as f64 - 0.5)
        })
        .collect()
}

/// Runs `compute(input, output)` on the same input with both buffers shifted by 0 to 15 elements, and fails if any bit
/// of the output differs.
pub fn at_every_alignment<F: Real>(n_inputs: usize, n_outputs: usize, compute: impl Fn(&[F], &mut [F])) {
    let input = values::<F>(9, n_inputs);
    let mut first = vec![F::ZERO; n_outputs];
    compute(&input, &mut first);
    for (shift_in, shift_out) in (0..16).map(|shift| (shift, (5 * shift) % 16)) {
        let mut moved_input = vec![F::ZERO; shift_in];
        moved_input.extend_from_slice(&input);
        let mut moved_output = vec![F::ZERO; shift_out + n_outputs];
        compute(&moved_input[shift_in..], &mut moved_output[shift_out..]);
        let same =
            first.iter().zip(&moved_output[shift_out..]).all(|(a, b)| a.to_f64().to_bits() == b.to_f64().to_bits());
        assert!(same, "{}: moving the buffers by {shift_in} and {shift_out} changes the result", F::NAME);
    }
}
