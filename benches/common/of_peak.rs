//! Criterion with rates as percentages of the peak: what multiplications and additions in registers reach on
//! the same threads in the same run.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::hint::black_box;
use std::rc::Rc;
use std::time::{Duration, Instant};

use criterion::measurement::{Measurement, ValueFormatter, WallTime};
use criterion::{Criterion, SamplingMode, Throughput};
use pulp::{Simd, WithSimd};
use stickbreak::parallel::map;
use stickbreak::simd::{Instructions, Scalar};

/// Samples of every bench, the fewest that criterion takes.
const SAMPLES: usize = 10;

/// Runs for one peak; the best counts, since whatever else the machine does only ever takes time away.
const PEAK_ATTEMPTS: usize = 40;
/// Rounds of one run.
const PEAK_ROUNDS: usize = 1 << 20;
/// Sums that are added to in turn: more than the processor needs to hide how long one takes.
const PEAK_SUMS: usize = 12;

/// Multiplications and additions in registers, in vectors of the widest instruction set; returns how many.
struct Fma<F>(F);

impl<F: Scalar> WithSimd for Fma<F> {
    type Output = usize;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> usize {
        let value = F::splat(simd, black_box(self.0));
        let mut sums = [value; PEAK_SUMS];
        // Equal sums would be computed once.
        for sum in &mut sums {
            *sum = F::splat(simd, black_box(self.0));
        }
        for _ in 0..PEAK_ROUNDS {
            for sum in &mut sums {
                *sum = F::mul_add(simd, *sum, value, value);
            }
        }
        // All of them, for what is not looked at is not computed.
        black_box(bytemuck::cast_slice::<_, u8>(&sums));
        2 * PEAK_ROUNDS * PEAK_SUMS * (size_of_val(&value) / size_of::<F>())
    }
}

/// Operations per second that the processor can do, on all threads at the same time.
fn peak_rate<F: Scalar>(threads: usize) -> f64 {
    let rates = (0..PEAK_ATTEMPTS).map(|_| {
        let started = Instant::now();
        let operations: usize = map(threads, |_| Instructions::widest().run(Fma(F::from_f64(0.5)))).into_iter().sum();
        operations as f64 / started.elapsed().as_secs_f64()
    });
    rates.fold(0.0, f64::max)
}

/// Measures the peak of a pool, and names it in the raw output, whose percentages refer to it.
#[allow(clippy::print_stdout, reason = "raw output")]
pub fn print_peak<F: Scalar>(pool: &rayon::ThreadPool) -> f64 {
    let threads = pool.current_num_threads();
    let peak = pool.install(|| peak_rate::<F>(threads));
    println!("FMA peak of {threads} thread(s), {}: {:.1} Gflop/s", F::NAME, peak / 1e9);
    peak
}

/// Wall time, and rates as percentages of the current peak.
struct OfPeak {
    wall: WallTime,
    peak: Rc<Cell<f64>>,
}

impl Measurement for OfPeak {
    type Intermediate = Instant;
    type Value = Duration;

    fn start(&self) -> Instant {
        self.wall.start()
    }

    fn end(&self, started: Instant) -> Duration {
        self.wall.end(started)
    }

    fn add(&self, a: &Duration, b: &Duration) -> Duration {
        self.wall.add(a, b)
    }

    fn zero(&self) -> Duration {
        self.wall.zero()
    }

    fn to_f64(&self, value: &Duration) -> f64 {
        self.wall.to_f64(value)
    }

    fn formatter(&self) -> &dyn ValueFormatter {
        self
    }
}

impl ValueFormatter for OfPeak {
    fn scale_values(&self, typical: f64, values: &mut [f64]) -> &'static str {
        self.wall.formatter().scale_values(typical, values)
    }

    fn scale_throughputs(&self, typical: f64, throughput: &Throughput, values: &mut [f64]) -> &'static str {
        let Throughput::Elements(operations) = *throughput else {
            return self.wall.formatter().scale_throughputs(typical, throughput, values);
        };
        for value in values {
            let rate = operations as f64 / (*value * 1e-9);
            *value = 100.0 * rate / self.peak.get();
        }
        "% of FMA peak"
    }

    fn scale_for_machines(&self, values: &mut [f64]) -> &'static str {
        self.wall.formatter().scale_for_machines(values)
    }
}

/// A criterion run that knows the peaks.
pub struct Bench {
    criterion: Criterion<OfPeak>,
    peak: Rc<Cell<f64>>,
    peaks: BTreeMap<(&'static str, usize), f64>,
}

impl Bench {
    /// Runs what the command line asks for.
    pub fn from_arguments() -> Self {
        let peak = Rc::new(Cell::new(f64::NAN));
        let criterion = Criterion::default()
            .with_measurement(OfPeak { wall: WallTime, peak: peak.clone() })
            .without_plots()
            .sample_size(SAMPLES)
            .nresamples(2000)
            .warm_up_time(Duration::from_millis(20))
            .configure_from_args();
        Self { criterion, peak, peaks: BTreeMap::new() }
    }

    /// Measures `task`, which does `operations` useful ones in numbers of type `F`, on a pool of `threads`.
    pub fn measure<F: Scalar>(
        &mut self,
        (group, id): (&str, &str),
        threads: usize,
        operations: f64,
        mut task: impl FnMut() + Send,
    ) {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads start");
        self.set_peak::<F>(&pool);
        pool.install(&mut task);
        let started = Instant::now();
        pool.install(&mut task);
        // Room for two runs a sample: criterion complains about one.
        let enough = started.elapsed().mul_f64(1.5 * SAMPLES as f64).max(Duration::from_millis(200));
        let mut group = self.criterion.benchmark_group(group);
        group.measurement_time(enough).sampling_mode(SamplingMode::Flat);
        group.throughput(Throughput::Elements(operations as u64));
        group.bench_function(id, |bencher| bencher.iter(|| pool.install(&mut task)));
        group.finish();
    }

    /// Makes the peak of this type and pool the current one; the first time, it is measured.
    fn set_peak<F: Scalar>(&mut self, pool: &rayon::ThreadPool) {
        let threads = pool.current_num_threads();
        let peak = *self.peaks.entry((F::NAME, threads)).or_insert_with(|| print_peak::<F>(pool));
        self.peak.set(peak);
    }

    /// Ends the run as criterion does.
    pub fn finish(self) {
        self.criterion.final_summary();
    }
}
