//! Criterion with rates as percentages of the peak: what a large product does on the same threads in the same run.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use criterion::measurement::{Measurement, ValueFormatter, WallTime};
use criterion::{Criterion, SamplingMode, Throughput};
use stickbreak::linalg::{Scalar, gemm};
use stickbreak::parallel::map;

/// Side of the square product that stands for the peak: many times what the caches hold.
const PEAK_SIZE: usize = 1024;
/// Samples of every bench, the fewest that criterion takes.
const SAMPLES: usize = 10;

/// Products for one peak; the best counts, since whatever else the machine does only ever takes time away.
const PEAK_ATTEMPTS: usize = 20;

/// Operations per second of one large product a thread, all at the same time.
fn gemm_rate<F: Scalar>(threads: usize) -> f64 {
    let n = PEAK_SIZE;
    let values: Vec<F> = (0..n * n).map(|i| F::from_f64((i * 7919 % 1000) as f64 / 1000.0 - 0.5)).collect();
    let products: Vec<_> = (0..threads).map(|_| Mutex::new(vec![F::ZERO; n * n])).collect();
    let seconds = (0..PEAK_ATTEMPTS).map(|_| {
        let started = Instant::now();
        map(threads, |thread| {
            let mut product = products[thread].lock().expect("nothing panics");
            gemm(n, n, n, &values, n, &values, n, &mut product, n);
        });
        started.elapsed().as_secs_f64()
    });
    threads as f64 * 2.0 * (n as f64).powi(3) / seconds.fold(f64::INFINITY, f64::min)
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
        "% of GEMM peak"
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
    #[allow(clippy::print_stdout, reason = "the raw output names the peak that the percentages refer to")]
    fn set_peak<F: Scalar>(&mut self, pool: &rayon::ThreadPool) {
        let threads = pool.current_num_threads();
        let peak = *self.peaks.entry((F::NAME, threads)).or_insert_with(|| {
            let peak = pool.install(|| gemm_rate::<F>(threads));
            println!("GEMM peak of {threads} thread(s), {}: {:.1} Gflop/s", F::NAME, peak / 1e9);
            peak
        });
        self.peak.set(peak);
    }

    /// Ends the run as criterion does.
    pub fn finish(self) {
        self.criterion.final_summary();
    }
}
