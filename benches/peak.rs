//! Prints the FMA peak of one thread, by type: what the other benches refer to, for programs that are not in Rust.

fn main() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("threads start");
    stickbreak_benches::print_peak::<f32>(&pool);
    stickbreak_benches::print_peak::<f64>(&pool);
}
