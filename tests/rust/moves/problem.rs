//! Rows and a model for every likelihood that has moves.

use rand::RngExt;
use rand_distr::Poisson;
use stickbreak::data::{Csr, CsrRows, DenseRows, Rows, TableRows, moments};
use stickbreak::likelihood::demands;
use stickbreak::model::{Model, Named, Specification};
use stickbreak::parallel::Cancel;
use stickbreak::parameters::{Parameters, Value};

use crate::common::{clustered, generator, specification};

/// Content and storage form of the rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Form {
    Dense,
    /// One value of ten is missing.
    Missing,
    /// In compressed sparse rows.
    Sparse,
    /// Sparse rows with so many columns that a batch has values in few of them, so that its summary stores only
    /// nonzeros.
    Rare,
}

/// Number of columns of [`Form::Rare`] per column of other forms.
const RARE: usize = 250;

/// A likelihood, a process and the form of the rows.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    pub likelihood: &'static str,
    pub process: &'static str,
    pub form: Form,
    pub weighted: bool,
}

/// Covers every likelihood and every process with moves, and every form of rows that a likelihood takes.
pub const CASES: [Case; 18] = [
    case("Gaussian", "DirichletProcess", Form::Dense, false),
    case("Gaussian", "DirichletProcess tail", Form::Dense, true),
    case("Gaussian", "DirichletProcess gamma", Form::Dense, false),
    case("Gaussian", "PitmanYor", Form::Dense, true),
    case("ZeroMeanGaussian", "DirichletProcess", Form::Dense, true),
    case("DiagonalGaussian", "DirichletProcess", Form::Missing, false),
    case("DiagonalGaussian", "DirichletProcess tail", Form::Dense, true),
    case("SphericalGaussian", "DirichletProcess gamma", Form::Dense, true),
    case("KnownCovarianceGaussian", "PitmanYor", Form::Dense, false),
    case("SphericalGaussian", "DirichletProcess", Form::Missing, true),
    case("KnownCovarianceGaussian", "DirichletProcess gamma", Form::Missing, false),
    case("Multinomial", "DirichletProcess", Form::Sparse, true),
    case("Multinomial", "DirichletProcess tail", Form::Dense, false),
    case("Bernoulli", "DirichletProcess", Form::Missing, true),
    case("Poisson", "DirichletProcess", Form::Missing, false),
    case("Poisson", "DirichletProcess gamma", Form::Sparse, true),
    case("Multinomial", "DirichletProcess", Form::Rare, false),
    case("Poisson", "DirichletProcess tail", Form::Rare, true),
];

const fn case(likelihood: &'static str, process: &'static str, form: Form, weighted: bool) -> Case {
    Case { likelihood, process, form, weighted }
}

/// A table that owns its rows.
enum Table {
    Dense(Vec<f64>),
    Sparse(Vec<u64>, Vec<u32>, Vec<f64>),
}

/// Rows in clusters, their weights, and a model of them.
pub struct Problem {
    table: Table,
    pub weights: Option<Vec<f64>>,
    pub model: Model<f64>,
    dimension: usize,
}

impl Problem {
    pub fn new(case: Case, n: usize, dimension: usize, n_clusters: usize, seed: u64) -> Self {
        let mut random = generator(seed + 1);
        let is_sparse = matches!(case.form, Form::Sparse | Form::Rare);
        let dimension = if case.form == Form::Rare { RARE * dimension } else { dimension };
        let mut values = match case.likelihood {
            _ if case.form == Form::Rare => rare(n, dimension, n_clusters, seed),
            "Multinomial" | "Poisson" => counts(n, dimension, n_clusters, seed),
            "Bernoulli" => bits(n, dimension, n_clusters, seed),
            _ => clustered(n, dimension, n_clusters, seed),
        };
        if case.form == Form::Missing {
            for row in values.chunks_exact_mut(dimension) {
                // The first value stays, so that no row is entirely missing.
                row[1..].iter_mut().filter(|_| random.random::<f64>() < 0.1).for_each(|value| *value = f64::NAN);
            }
        }
        let weights = case.weighted.then(|| (0..n).map(|row| [1.0, 0.5, 2.0, 0.0, 3.25][row * 7 % 5]).collect());
        let mut specification = Specification {
            missing: case.form == Form::Missing,
            ..specification(case.likelihood, case.process, n_clusters)
        };
        if case.likelihood == "KnownCovarianceGaussian" {
            specification.likelihood = Named { parameters: unit_covariance(dimension), ..specification.likelihood };
        }
        let dense = DenseRows::new(&values, dimension);
        let asked = demands(case.likelihood, &specification.likelihood.parameters).expect("a name of the registry");
        let weights: Option<Vec<f64>> = weights;
        let rows = TableRows { rows: &dense, weights: weights.as_deref() };
        let data = moments(&rows, asked.sought.needs, &asked.domain.into(), specification.missing, &Cancel::default())
            .expect("rows of its domain");
        // Sparse rows have no origin.
        let origin = if is_sparse { vec![0.0; dimension] } else { data.mean.clone() };
        let model = specification.resolve(&data).expect("defaults").build(origin).expect("defaults");
        let table = if is_sparse { compressed(&values, dimension) } else { Table::Dense(values) };
        Self { table, weights, model, dimension }
    }

    pub fn rows(&self) -> Box<dyn Rows<f64> + '_> {
        match &self.table {
            Table::Dense(values) => Box::new(DenseRows::new(values, self.dimension)),
            Table::Sparse(starts, columns, values) => Box::new(
                CsrRows::new(Csr { starts, columns, values }, self.dimension).expect("parts that fit together"),
            ),
        }
    }
}

pub fn unit_covariance(d: usize) -> Parameters {
    let data = (0..d * d).map(|entry| if entry % (d + 1) == 0 { 1.0 } else { 0.0 }).collect();
    Parameters::from_pairs([
        ("covariance", Value::Array { shape: vec![d, d], data }),
        ("mean_precision", Value::Number(0.05)),
    ])
}

/// Counts with rates from 0.3 to 8, which differ between clusters.
fn counts(n: usize, d: usize, k: usize, seed: u64) -> Vec<f64> {
    let mut random = generator(seed);
    let rates: Vec<f64> = (0..k * d).map(|_| [0.3, 2.0, 8.0][random.random_range(0..3_usize)]).collect();
    let row = |row: usize| &rates[row % k * d..][..d];
    let rates: Vec<f64> = (0..n).flat_map(|row_number| row(row_number).to_vec()).collect();
    rates.into_iter().map(|rate| random.sample(Poisson::new(rate).expect("positive"))).collect()
}

/// Five words a row, four of them among the few of its cluster.
fn rare(n: usize, d: usize, k: usize, seed: u64) -> Vec<f64> {
    let mut random = generator(seed);
    let mut values = vec![0.0; n * d];
    for (row, values) in values.chunks_exact_mut(d).enumerate() {
        for word in 0..5 {
            let word_of_cluster = 12 * (row % k) + random.random_range(0..12_usize);
            values[if word > 0 { word_of_cluster % d } else { random.random_range(0..d) }] += 1.0;
        }
    }
    values
}

/// Bits that are set with probabilities 0.05, 0.5 or 0.95.
fn bits(n: usize, d: usize, k: usize, seed: u64) -> Vec<f64> {
    let mut random = generator(seed);
    let chances: Vec<f64> = (0..k * d).map(|_| [0.05, 0.5, 0.95][random.random_range(0..3_usize)]).collect();
    let chance = |index: usize| chances[(index / d) % k * d + index % d];
    (0..n * d).map(|index| f64::from(u8::from(random.random::<f64>() < chance(index)))).collect()
}

fn compressed(values: &[f64], d: usize) -> Table {
    let (mut starts, mut columns, mut kept) = (vec![0], Vec::new(), Vec::new());
    for row in values.chunks_exact(d) {
        for (column, &value) in (0..).zip(row).filter(|(_, value)| **value != 0.0) {
            columns.push(column);
            kept.push(value);
        }
        starts.push(kept.len() as u64);
    }
    Table::Sparse(starts, columns, kept)
}
