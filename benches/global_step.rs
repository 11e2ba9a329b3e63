//! The global step by D, K, type and threads: a summary becomes components, packed for the local step, and a bound.
//!
//! Its arithmetic is `f64` whatever the rows are, so rates are percentages of the `f64` FMA peak. Useful operations
//! are one Cholesky factor and one inverse of it a component, `2/3 K D^3`; n does not enter.

use std::hint::black_box;

use stickbreak::elbo;
use stickbreak::simd::Scalar;
use stickbreak_benches::{Bench, Sizes, State, generate, short_name};

const DEFAULT: Sizes = Sizes { n: 8192, d: 64, k: 128, width: 4, threads: 1 };

/// One axis at a time, the others as in the default.
fn cases() -> Vec<Sizes> {
    let mut cases = vec![DEFAULT];
    cases.extend([2, 16, 32, 50, 128].map(|d| Sizes { d, ..DEFAULT }));
    cases.extend([8, 512].map(|k| Sizes { k, ..DEFAULT }));
    cases.push(Sizes { threads: 2, ..DEFAULT });
    cases
}

fn id<F: Scalar>(sizes: Sizes) -> String {
    let threads = if sizes.threads == DEFAULT.threads { String::new() } else { format!("threads={}/", sizes.threads) };
    format!("{threads}D={}/K={}/{}", sizes.d, sizes.k, short_name::<F>())
}

fn measure<F: Scalar>(bench: &mut Bench, sizes: Sizes) {
    let data = generate::<F>(sizes);
    let state = State::new(&data, sizes);
    let operations = 2.0 / 3.0 * sizes.k as f64 * (sizes.d as f64).powi(3);
    bench.measure::<f64>(("global_step", &id::<F>(sizes)), sizes.threads, operations, || {
        black_box(state.globals().scorer(&state.model).expect("definite"));
        black_box(elbo::collapsed(&state.model, &state.summary).expect("definite").total());
    });
}

fn main() {
    let mut bench = Bench::from_arguments();
    for sizes in cases() {
        measure::<f32>(&mut bench, sizes);
        measure::<f64>(&mut bench, sizes);
    }
    bench.finish();
}
