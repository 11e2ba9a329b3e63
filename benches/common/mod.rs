//! What the benches of the engine share: rates as fractions of the machine's peak, and a state to measure.

#![allow(clippy::missing_panics_doc, reason = "a bench that cannot run should panic")]

mod of_peak;
pub mod plain_gibbs;

use rand_distr::{Distribution, StandardNormal};
use stickbreak::component::EditLog;
use stickbreak::data::{DenseRows, RowUnits, TableRows, moments};
use stickbreak::global_step::Globals;
use stickbreak::likelihood::demands;
use stickbreak::local_step::{ByScore, FromLabels, Keep, LocalStep, Outcome};
use stickbreak::model::{Model, Named, Objective, Specification};
use stickbreak::parallel::Cancel;
use stickbreak::parameters::Parameters;
use stickbreak::rng::{Purpose, stream};
use stickbreak::simd::Scalar;
use stickbreak::suffstats::Summary;

pub use of_peak::{Bench, print_peak};

/// Sizes of one measurement.
#[derive(Debug, Clone, Copy)]
pub struct Sizes {
    /// Rows.
    pub n: usize,
    /// Columns, D.
    pub d: usize,
    /// Components, K.
    pub k: usize,
    /// Components kept a row, L.
    pub width: usize,
    /// Threads.
    pub threads: usize,
}

impl Sizes {
    /// Useful operations of its scores: a triangular product, `D (D + 1)`, for every row and component.
    pub fn score_operations(self) -> f64 {
        (self.n * self.k * self.d * (self.d + 1)) as f64
    }

    /// Useful operations of one local step: two triangular products a row, `D (D + 1)` each, one for every component
    /// that is scored and one for every component whose statistics the row enters.
    pub fn local_operations(self) -> f64 {
        (self.n * (self.k + self.width) * self.d * (self.d + 1)) as f64
    }
}

/// `f32` or `f64`.
pub fn short_name<F: Scalar>() -> String {
    F::NAME.replace("float", "f")
}

/// Rows with an even share around each of K random centres, and the labels that say whose they are.
pub struct Data<F> {
    /// (n, D).
    pub rows: Vec<F>,
    /// (n,).
    pub labels: Vec<u32>,
}

/// The same numbers in every run.
pub fn generate<F: Scalar>(sizes: Sizes) -> Data<F> {
    let mut generator = stream(1, Purpose::Draws, 0);
    let mut normal = || -> f64 { StandardNormal.sample(&mut generator) };
    let centres: Vec<f64> = (0..sizes.k * sizes.d).map(|_| normal()).collect();
    let labels: Vec<u32> = (0..sizes.n).map(|row| (row % sizes.k) as u32).collect();
    let rows = labels
        .iter()
        .flat_map(|&label| centres[label as usize * sizes.d..][..sizes.d].to_vec())
        .map(|centre| F::from_f64(centre + normal()))
        .collect();
    Data { rows, labels }
}

/// A Gaussian Dirichlet-process mixture of some data, in the state that their labels give.
pub struct State<'a, F: Scalar> {
    /// The model.
    pub model: Model<F>,
    /// What the labels sum to.
    pub summary: Summary,
    rows: DenseRows<'a, F>,
    cancel: Cancel,
}

impl<'a, F: Scalar> State<'a, F> {
    /// The default model of the data, and the summary of their labels.
    pub fn new(data: &'a Data<F>, sizes: Sizes) -> Self {
        let rows = DenseRows::new(&data.rows, sizes.d);
        let cancel = Cancel::default();
        let units = RowUnits::all(&rows, None);
        let asked = demands("Gaussian", &Parameters::default()).expect("a name of the registry");
        let found = moments(
            &TableRows { rows: &rows, weights: None },
            asked.sought.needs,
            &asked.domain.into(),
            false,
            &cancel,
        )
        .expect("finite rows");
        let named = |name: &str| Named { name: name.into(), parameters: Parameters::default() };
        let objective = Objective::Variational;
        let specification = Specification {
            estimated: None,
            learned: None,
            values: None,
            background: None,
            likelihood: named("Gaussian"),
            process: named("DirichletProcess"),
            objective,
            missing: false,
        };
        let origin = found.mean.iter().map(|&value| F::from_f64(value).to_f64()).collect();
        let model: Model<F> = specification.resolve(&found).expect("defaults").build(origin).expect("defaults");
        let step = LocalStep {
            likelihood: model.likelihood.as_ref(),
            ids: &EditLog::with_components(sizes.k).components().expect("one append"),
            assign: &FromLabels { labels: &data.labels },
            keep: Keep::Summary,
            cancel: &cancel,
        };
        let summary = step.run(&units, None, &mut []).expect("finite rows").summary;
        drop(units);
        Self { model, summary, rows, cancel }
    }

    /// The components that follow from the summary.
    pub fn globals(&self) -> Globals {
        Globals::new(&self.model, &self.summary, 0)
    }

    /// One local step of all rows with packed components.
    pub fn local_step(&self, globals: &Globals, assign: &ByScore<'_, F>, keep: Keep) -> Outcome {
        let step = LocalStep {
            likelihood: self.model.likelihood.as_ref(),
            ids: &globals.ids,
            assign,
            keep,
            cancel: &self.cancel,
        };
        step.run(&RowUnits::all(&self.rows, None), None, &mut []).expect("finite rows")
    }
}
