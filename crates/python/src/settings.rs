//! What Python asks of a fit, as the core reads it.

use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use stickbreak::Error;
use stickbreak::data as tree;
use stickbreak::fit::{Algorithm, Cut, Settings};
use stickbreak::fitted::{Resumed, Standing};
use stickbreak::init::Init;
use stickbreak::local_step::{DocumentOptions, Keep, OpeningRule, TreeOptions};
use stickbreak::model::Specification;
use stickbreak::moves::Moves;
use stickbreak::responsibilities::Sparsity;
use stickbreak::visits::{FirstPass, LocalOptions, TreeSettings, UnitOptions, WordOptions};

use crate::errors::to_python;
use crate::specification::{GivenPair, read};
use crate::state::FitState;

/// The settings of an algorithm, a number of components to start from, one seed for each start, and a number of
/// threads.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct GivenSettings<'py> {
    n_components: Option<usize>,
    batches: Option<usize>,
    batch_size: Option<usize>,
    shard_rows: usize,
    shuffle: bool,
    steps: Option<(f64, f64)>,
    moves: Vec<GivenPair<'py>>,
    sparsity: Option<Width>,
    margin: Option<f64>,
    bounds_memory: usize,
    max_passes: usize,
    tol: f64,
    documents: GivenDocuments,
    tree: Option<GivenTree>,
    labels: Option<PyReadonlyArray1<'py, i64>>,
    pub seeds: Vec<u64>,
    pub threads: Option<usize>,
}

/// A number of components to keep, or "auto".
#[derive(FromPyObject)]
enum Width {
    Number(usize),
    Name(String),
}

impl GivenSettings<'_> {
    /// The units of a model. A topic model ignores a tree on trial, which is left out where trees are not supported.
    fn units(&self, specification: &Specification) -> PyResult<UnitOptions> {
        let words = self.documents.read()?;
        let usual = UnitOptions::usual(specification, words).map_err(|error| to_python(&error))?;
        match &self.tree {
            Some(tree) if !tree.on_trial || usual == UnitOptions::Rows => tree.read().map(UnitOptions::Nodes),
            _ => Ok(usual),
        }
    }

    /// The settings of one run; a fit gives each its seed.
    pub fn read(&self, specification: &Specification) -> PyResult<Settings> {
        let batches = self.batch_size.map(Cut::Size).or(self.batches.map(Cut::Number)).unwrap_or(Cut::Auto);
        let algorithm = self.steps.map_or(Algorithm::Memoized, |(delay, decay)| Algorithm::Stochastic { delay, decay });
        let sparsity = match &self.sparsity {
            None => Sparsity::Dense,
            Some(Width::Number(width)) => Sparsity::Limited(*width),
            Some(Width::Name(name)) if name == "auto" => Sparsity::Auto,
            Some(Width::Name(name)) => {
                let allowed = "\"auto\", None or a number of components";
                return Err(to_python(&Error::invalid("sparsity", format!("{name:?}"), allowed)));
            }
        };
        let (margin, bounds_memory) = (self.margin, self.bounds_memory);
        Ok(Settings {
            n_components: self.n_components,
            batches,
            shard_rows: self.shard_rows,
            shuffle: self.shuffle,
            algorithm,
            moves: moves(&self.moves)?,
            local: LocalOptions { sparsity, margin, bounds_memory, keep: Keep::Summary },
            labels: self.labels.as_ref().map(|labels| labels.as_array().iter().copied().collect()),
            units: self.units(specification)?,
            max_passes: self.max_passes,
            tol: self.tol,
            seed: 0,
        })
    }
}

/// How documents are visited, and what the first pass over them stands for.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct GivenDocuments {
    first_pass: String,
    max_steps: usize,
    tolerance: f64,
    warm: bool,
    restarts: usize,
}

impl GivenDocuments {
    fn read(&self) -> PyResult<WordOptions> {
        let name = &self.first_pass;
        let refuse = || to_python(&Error::invalid("first_pass", format!("{name:?}"), "\"plain\" or \"scaled\""));
        let first_pass = FirstPass::from_name(name).ok_or_else(refuse)?;
        let Self { max_steps, tolerance, warm, restarts, .. } = *self;
        Ok(WordOptions { first_pass, visits: DocumentOptions { max_steps, tolerance, warm, restarts } })
    }
}

/// How trees are used.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct GivenTree {
    depth: usize,
    expand_every: usize,
    rule: String,
    tolerance: f64,
    budget: Option<usize>,
    split: String,
    refine: bool,
    on_trial: bool,
}

impl GivenTree {
    fn read(&self) -> PyResult<TreeSettings> {
        let refuse = |name: &str, found: &str, allowed: &str| {
            to_python(&Error::invalid(name, format!("{found:?}"), allowed.to_owned()))
        };
        let cut = tree::NodeCut::from_name(&self.split)
            .ok_or_else(|| refuse("split", &self.split, "\"axis\" or \"principal\""))?;
        let rule = OpeningRule::from_name(&self.rule)
            .ok_or_else(|| refuse("rule", &self.rule, "\"gain\" or \"responsibility\""))?;
        let Self { depth, expand_every, tolerance, budget, refine, on_trial, .. } = *self;
        let options = TreeOptions { depth, cut };
        Ok(TreeSettings { options, expand_every, rule, tolerance, budget, refine, on_trial, for_moves: true })
    }
}

/// The moves of a run.
fn moves(pairs: &[GivenPair<'_>]) -> PyResult<Moves> {
    let mut moves = Moves::default();
    for (name, parameters) in pairs {
        moves.add(name, &read(parameters)?).map_err(|error| to_python(&error))?;
    }
    Ok(moves)
}

/// A start as Python may write it.
#[derive(FromPyObject)]
pub enum GivenStart<'py> {
    Name(String),
    Labels(PyReadonlyArray1<'py, i64>),
    Table(PyReadonlyArray2<'py, f64>),
    State(PyRef<'py, FitState>),
}

impl GivenStart<'_> {
    /// The labels, where it has any.
    pub fn labels(&self) -> PyResult<Vec<u32>> {
        let GivenStart::Labels(labels) = self else { return Ok(Vec::new()) };
        let label = |&label: &i64| {
            let refuse = |_| to_python(&Error::invalid("init", label, "labels from 0 to 4294967295"));
            u32::try_from(label).map_err(refuse)
        };
        labels.as_array().iter().map(label).collect()
    }

    /// The start that the core reads, with its own `labels`.
    pub fn read<'a>(&'a self, labels: &'a [u32]) -> PyResult<Init<'a>> {
        match self {
            GivenStart::Name(name) => match name.as_str() {
                "kmeans++" => Ok(Init::KmeansPlusPlus),
                "random" => Ok(Init::Random),
                "sequential" => Ok(Init::Sequential),
                _ => {
                    let allowed = "\"kmeans++\", \"random\" or \"sequential\"";
                    Err(to_python(&Error::invalid("init", format!("{name:?}"), allowed)))
                }
            },
            GivenStart::Labels(_) => Ok(Init::Labels(labels)),
            GivenStart::Table(table) => Ok(Init::Table(table.as_slice()?)),
            GivenStart::State(state) => {
                let fitted = state.fitted();
                let (summary, origin) = (&fitted.summary, &fitted.origin);
                let specification = &fitted.specification;
                let (coordinates, classes) = (&fitted.coordinates, &fitted.classes);
                Ok(Init::Summary { summary, origin, specification, coordinates, classes })
            }
        }
    }
}

/// What a checkpoint file holds.
#[derive(FromPyObject)]
pub struct GivenCheckpoint<'py> {
    index: usize,
    n_wide: Option<usize>,
    best: Option<PyRef<'py, FitState>>,
    run: Option<PyBackedBytes>,
}

impl GivenCheckpoint<'_> {
    /// The starts to go on from.
    pub fn read(&self) -> Resumed<'_> {
        let best = self.best.as_ref().map(|state| state.fitted().clone());
        let standing = Standing { index: self.index, n_wide: self.n_wide, best };
        Resumed { standing, run: self.run.as_deref() }
    }
}
