//! The local step by n, D, K, L, type and threads: packed components in, summary out; and its scores alone, from the
//! rows to the responsibilities.
//!
//! Rates are percentages of the machine's FMA peak. Useful operations are `n K D (D + 1)` for scores and
//! `n L D (D + 1)` for statistics; what is computed beside the triangles is not counted.

use stickbreak::local_step::{ByScore, Keep};
use stickbreak::simd::Scalar;
use stickbreak_benches::{Bench, Sizes, State, generate, short_name};

const DEFAULT: Sizes = Sizes { n: 8192, d: 64, k: 128, width: 4, threads: 1 };

/// One axis at a time, the others as in the default.
fn cases() -> Vec<Sizes> {
    let mut cases = vec![DEFAULT];
    cases.extend([1024, 32_768].map(|n| Sizes { n, ..DEFAULT }));
    cases.extend([2, 8, 16, 25, 32, 50, 128].map(|d| Sizes { d, ..DEFAULT }));
    cases.extend([8, 32, 512].map(|k| Sizes { k, ..DEFAULT }));
    cases.extend([1, 8, DEFAULT.k].map(|width| Sizes { width, ..DEFAULT }));
    cases.push(Sizes { threads: 2, ..DEFAULT });
    cases
}

/// What is not the default is named, D, K, L and the type always.
fn id<F: Scalar>(sizes: Sizes) -> String {
    let name = |text: &str, value: usize, default: usize| {
        if value == default { String::new() } else { format!("{text}={value}/") }
    };
    let rows = name("n", sizes.n, DEFAULT.n);
    let threads = name("threads", sizes.threads, DEFAULT.threads);
    format!("flat/{rows}{threads}D={}/K={}/L={}/{}", sizes.d, sizes.k, sizes.width, short_name::<F>())
}

fn measure<F: Scalar>(bench: &mut Bench, sizes: Sizes) {
    let data = generate::<F>(sizes);
    let state = State::new(&data, sizes);
    let globals = state.globals();
    let scorer = globals.scorer(&state.model).expect("definite");
    let assign = ByScore {
        scorer: scorer.as_ref(),
        has_tail: false,
        width: sizes.width,
        margin: None,
        abandon: false,
        row_terms: false,
        mask: None,
    };
    bench.measure::<F>(("local_step", &id::<F>(sizes)), sizes.threads, sizes.local_operations(), || {
        state.local_step(&globals, &assign, Keep::Summary);
    });
    let operations = sizes.score_operations();
    bench.measure::<F>(("scores", &id::<F>(sizes)), sizes.threads, operations, || {
        state.local_step(&globals, &assign, Keep::Nothing);
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
