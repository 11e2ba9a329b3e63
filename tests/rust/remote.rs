//! Shards in other hands: visits in any order, by any worker, made twice or by a worker that has forgotten everything
//! give the bits of one process.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Mutex;

use proptest::prelude::*;
use stickbreak::data::{Collection, Dataset, DenseRows, RowUnits, Shards, TableRows};
use stickbreak::error::{Error, Result};
use stickbreak::executor::{
    Ask, Came, ReadBranch, RemoteShards, RequestPart, VisitBranch, Worker, add_sums, add_visits, pick_rows,
};
use stickbreak::fit::{Cut, Job, Settings, fit};
use stickbreak::fitted::Fitted;
use stickbreak::init::Init;
use stickbreak::model::Specification;
use stickbreak::moves::{Birth, Moves};
use stickbreak::parallel::Cancel;
use stickbreak::rng::{Choices, Generator, Purpose, stream};

use crate::common::clustered;

const D: usize = 3;

/// Rows in shards of these sizes.
struct ShardedRows {
    shards: Vec<DenseRows<'static, f64>>,
    sizes: Vec<usize>,
}

impl ShardedRows {
    fn new(values: &[f64], sizes: &[usize]) -> Self {
        let mut first = 0;
        let shard = |&size: &usize| {
            let rows = DenseRows::new(values[first * D..(first + size) * D].to_vec(), D);
            first += size;
            rows
        };
        Self { shards: sizes.iter().map(shard).collect(), sizes: sizes.to_vec() }
    }

    /// The same in other hands.
    fn behind<'a>(&'a self, ask: &'a dyn Ask) -> RemoteShards<'a> {
        RemoteShards { ask, n_columns: D, sizes: &self.sizes, weights: None }
    }
}

impl Shards<f64> for ShardedRows {
    fn n_columns(&self) -> usize {
        D
    }

    fn sizes(&self) -> &[usize] {
        &self.sizes
    }

    fn load(&self, shard: usize) -> Result<RowUnits<'_, f64>> {
        Ok(RowUnits::all(&self.shards[shard], None))
    }
}

/// A generator, and a worker for each number and setup.
type Workers = (Generator, BTreeMap<(usize, u64), Worker<f64>>);

/// Workers that make visits in random order, some of them twice, and forget everything from time to time.
struct Unreliable<'a> {
    rows: &'a ShardedRows,
    workers: Mutex<Workers>,
    n_workers: usize,
}

impl<'a> Unreliable<'a> {
    fn new(rows: &'a ShardedRows, n_workers: usize, seed: u64) -> Self {
        Self { rows, workers: Mutex::new((stream(seed, Purpose::Visits, 1), BTreeMap::new())), n_workers }
    }

    /// Adds up by levels.
    fn sum(&self, mut level: Vec<Vec<u8>>, add: impl Fn(&[u8], &[u8]) -> Result<Vec<u8>>) -> Result<Vec<u8>> {
        while level.len() > 1 {
            let pairs = level.chunks(2).map(|pair| match pair {
                [left, right] => add(left, right),
                alone => Ok(alone[0].clone()),
            });
            level = pairs.collect::<Result<_>>()?;
        }
        level.pop().ok_or_else(|| Error::Format { message: format!("no answers of {} workers", self.n_workers) })
    }
}

impl Ask for Unreliable<'_> {
    fn visit(&self, shards: &[usize], parts: &[RequestPart; 4]) -> Result<Vec<u8>> {
        let mut guard = self.workers.lock().expect("no panic");
        let (generator, workers) = &mut *guard;
        // Neighbours that are one task.
        let branches: Vec<&[usize]> = shards.chunks(1 << generator.pick(3)).collect();
        let mut order: Vec<u32> = (0..branches.len() as u32).collect();
        generator.shuffle(&mut order);
        let mut answers = vec![Vec::new(); branches.len()];
        let [setup, rest @ ..] = parts;
        let came = rest.each_ref().map(|part| Came { key: part.key, bytes: &part.bytes });
        for place in order.into_iter().map(|place| place as usize) {
            for _ in 0..=usize::from(generator.pick(4) == 0) {
                let who = (generator.pick(self.n_workers), setup.key);
                if generator.pick(6) == 0 {
                    workers.remove(&who);
                }
                let worker = match workers.entry(who) {
                    Entry::Occupied(known) => known.into_mut(),
                    Entry::Vacant(new) => new.insert(Worker::new(&setup.bytes)?),
                };
                let mut branch = VisitBranch::new(came)?;
                for &shard in branches[place] {
                    worker.visit(&mut branch, shard, &self.rows.shards[shard], None)?;
                }
                answers[place] = worker.finish(branch)?;
            }
        }
        self.sum(answers, |left, right| add_visits::<f64>(&parts[1].bytes, left, right))
    }

    fn read(&self, reading: &RequestPart) -> Result<Vec<u8>> {
        let read = |shards: &[DenseRows<'static, f64>]| {
            let mut branch = ReadBranch::new(&reading.bytes)?;
            shards.iter().try_for_each(|shard| branch.read(shard, None))?;
            branch.finish()
        };
        let sums = self.rows.shards.chunks(1 << (self.n_workers % 3)).map(read).collect::<Result<_>>()?;
        self.sum(sums, |left, right| add_sums(&reading.bytes, left, right))
    }

    fn pick(&self, rows: &[(usize, Vec<u32>)]) -> Result<Vec<Vec<u8>>> {
        rows.iter().map(|(shard, list)| pick_rows(&self.rows.shards[*shard], None, list)).collect()
    }
}

fn fitted(rows: &dyn Dataset<f64>, ask: Option<&dyn Ask>, n_batches: usize, likelihood: &str, seed: u64) -> Fitted {
    let specification = Specification::new(likelihood, "DirichletProcess");
    let usual = Settings::usual(&specification).expect("a mixture");
    // Few enough rows of a component are copied that some are left out.
    let birth = Birth { adopt: false, max_subsample: 40, threshold: 0.1, fresh: 5 };
    let moves = Moves::all().with(birth);
    let settings = Settings { batches: Cut::Number(n_batches), moves, max_passes: 12, seed, ..usual };
    let job = Job { specification: &specification, rows, init: &Init::KmeansPlusPlus, settings: &settings, ask };
    fit(&job, None, &(), &Cancel::default()).expect("well-behaved rows")
}

/// Everything but times and amounts of work.
fn shown(mut fitted: Fitted) -> String {
    for record in &mut fitted.history {
        (record.seconds, record.evaluated_share) = (0.0, 0.0);
    }
    format!("{:?} {:?} {:?} {:?}", fitted.summary, fitted.elbo, fitted.history, fitted.specification)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]

    #[test]
    fn any_workers_give_the_bits_of_one_process(
        sizes in prop::collection::vec(1_usize..120, 3..12),
        n_batches in 1_usize..4,
        n_workers in 1_usize..4,
        likelihood in prop::sample::select(vec!["Gaussian", "DiagonalGaussian", "StudentT"]),
        seed in 0_u64..1000,
    ) {
        let n: usize = sizes.iter().sum();
        prop_assume!(n > 30);
        let rows = ShardedRows::new(&clustered(n, D, 4, seed), &sizes);
        let workers = Unreliable::new(&rows, n_workers, seed);
        let ask: &dyn Ask = &workers;
        let here = fitted(&Collection::new(&rows), None, n_batches, likelihood, seed);
        let there = fitted(&Collection::<f64>::new(&rows.behind(ask)), Some(ask), n_batches, likelihood, seed);
        prop_assert_eq!(shown(here), shown(there));
    }
}

/// Sums of shards are those of one table, up to the order in which they were added up.
#[test]
fn a_collection_has_the_moments_of_a_table() {
    let values = clustered(700, D, 3, 5);
    let rows = ShardedRows::new(&values, &[100, 0, 350, 250]);
    let table = DenseRows::new(&values, D);
    let table = fitted(&TableRows { rows: &table, weights: None }, None, 1, "Gaussian", 1);
    let shards = fitted(&Collection::new(&rows), None, 1, "Gaussian", 1);
    assert_eq!(shards.n_rows, 700);
    assert_eq!(shards.summary.n_components(), table.summary.n_components());
    assert!((shards.elbo - table.elbo).abs() < 1e-6 * table.elbo.abs(), "{} and {}", shards.elbo, table.elbo);
}

/// A shard with other rows than at the first reading is refused.
#[test]
fn changed_rows_are_refused() {
    struct Changing<'a>(Unreliable<'a>, Unreliable<'a>);

    impl Ask for Changing<'_> {
        fn visit(&self, shards: &[usize], parts: &[RequestPart; 4]) -> Result<Vec<u8>> {
            self.1.visit(shards, parts)
        }

        fn read(&self, reading: &RequestPart) -> Result<Vec<u8>> {
            self.0.read(reading)
        }

        fn pick(&self, rows: &[(usize, Vec<u32>)]) -> Result<Vec<Vec<u8>>> {
            self.0.pick(rows)
        }
    }

    let mut values = clustered(200, D, 2, 3);
    let rows = ShardedRows::new(&values, &[120, 80]);
    values[500] += 1e-6;
    let changed = ShardedRows::new(&values, &[120, 80]);
    let changing = Changing(Unreliable::new(&rows, 1, 0), Unreliable::new(&changed, 1, 0));
    let ask: &dyn Ask = &changing;
    let specification = Specification::new("Gaussian", "DirichletProcess");
    let settings = Settings { max_passes: 3, n_components: Some(2), ..Settings::default() };
    let shards = rows.behind(ask);
    let data = Collection::<f64>::new(&shards);
    let (init, ask) = (Init::KmeansPlusPlus, Some(ask));
    let job = Job { specification: &specification, rows: &data, init: &init, settings: &settings, ask };
    let error = fit(&job, None, &(), &Cancel::default()).expect_err("another value");
    assert!(matches!(&error, Error::Source { batch: Some(0), .. }), "{error}");
}
