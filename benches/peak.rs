//! Prints the FMA peak of one thread, by type: what the other benches refer to, for programs that are not in Rust.

mod common;

fn main() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("threads start");
    common::print_peak::<f32>(&pool);
    common::print_peak::<f64>(&pool);
}
