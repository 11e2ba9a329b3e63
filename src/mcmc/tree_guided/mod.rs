//! Tree-guided sampling (mathematics 8.10; after Lee & Choi 2015): whole subtrees move between clusters.

mod forest;
mod launched;
mod local;
mod published;
mod subtree;

use std::fmt;

use crate::data::Restrictions;
use crate::error::{Error, Result};
use crate::mcmc::samplers::{SUBSET, check_subset};
use crate::mcmc::trees::{Arena, Evenness, first_process, incremental, join_on_top, shape};
use crate::mcmc::{Attempts, ChainState, Collapsed, CollapsedGibbs, Info, Target, Turn};
use crate::parallel::Cancel;
use crate::parameters::Parameters;
use crate::registry::{DefaultValue, Entry, Parameter, ParameterKind};
use crate::rng::{Purpose, permutation, stream};
use crate::room::check_room;

pub(super) use forest::is_forest;
use forest::{Forest, TreeLaw, most_inner};
use launched::Launch;

/// What to try where trees do not fit in memory.
const INSTEAD: &str = "CollapsedGibbs() or SplitMerge() where trees do not fit in memory";

/// Settings of the sampler.
#[derive(Debug, Clone, Copy)]
struct GuidedSettings {
    global_moves: usize,
    depth: usize,
    exact: bool,
    fresh: bool,
    evenness: Evenness,
    guided: bool,
    scans: usize,
    subset: Option<usize>,
}

/// A sweep makes global moves (alternately subtree moves and tree-launched moves), then moves of single rows.
pub struct TreeGuided {
    settings: GuidedSettings,
    /// The law of trees, set before chains run.
    law: Option<TreeLaw>,
}

/// Shows the settings only. Everything else follows from them, the data and the seed.
impl fmt::Debug for TreeGuided {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "TreeGuided {:?}", self.settings)
    }
}

const COUNT: ParameterKind = ParameterKind::Integer { least: 1, greatest: 1_000_000 };
const GLOBAL_MOVES: Parameter = Parameter::new("global_moves", COUNT, DefaultValue::Number(20.0));
const DEPTH: Parameter =
    Parameter::new("depth", ParameterKind::Integer { least: 1, greatest: 100 }, DefaultValue::Number(2.0));
const EXACT: Parameter = Parameter::new("exact", ParameterKind::Flag, DefaultValue::Number(1.0));
const TREES: Parameter = Parameter::new("trees", ParameterKind::Word(&["guide", "fresh"]), DefaultValue::Word("guide"));
const LOCAL: Parameter =
    Parameter::new("local", ParameterKind::Word(&["uniform", "guided"]), DefaultValue::Word("uniform"));
const SCANS: Parameter =
    Parameter::new("scans", ParameterKind::Integer { least: 0, greatest: 1000 }, DefaultValue::Number(1.0));

/// The kinds of global moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Global {
    Subtree,
    Launched,
    Published,
}

impl TreeGuided {
    /// Entry in the registry.
    pub const ENTRY: Entry = Entry {
        parameters: &[GLOBAL_MOVES, DEPTH, EXACT, TREES, Evenness::PARAMETER, LOCAL, SCANS, SUBSET],
        ..Entry::new("TreeGuided")
    };

    /// Builds the sampler from the parameters of [`TreeGuided::ENTRY`].
    ///
    /// # Errors
    /// [`crate::Error::InvalidArgument`] naming the parameter.
    pub fn new(parameters: &Parameters) -> Result<Self> {
        let settings = GuidedSettings {
            global_moves: parameters.integer(&GLOBAL_MOVES)?,
            depth: parameters.integer(&DEPTH)?,
            exact: parameters.flag(&EXACT)?,
            fresh: parameters.word(&TREES)? == "fresh",
            evenness: Evenness::from_word(parameters.word(&Evenness::PARAMETER)?),
            guided: parameters.word(&LOCAL)? == "guided",
            scans: parameters.integer(&SCANS)?,
            subset: parameters.optional_integer(&SUBSET)?,
        };
        Ok(Self { settings, law: None })
    }

    /// The law of trees.
    fn law(&self) -> &TreeLaw {
        self.law.as_ref().expect("chains run after the sampler is prepared")
    }

    /// Returns the clusters of a chain with their trees: those stored in the chain for the published algorithm,
    /// otherwise new ones.
    fn forest<'a>(&'a self, state: &ChainState, turn: &mut Turn<'a>) -> Result<Forest<'a>> {
        if self.settings.exact || state.trees.is_empty() {
            return Forest::new(turn.target, self.law(), state, turn.draws);
        }
        let mut forest = Forest::empty(turn.target, self.law(), state);
        forest.read(&state.trees, state)?;
        Ok(forest)
    }

    /// Makes one global move of a kind.
    fn global(
        &self,
        kind: Global,
        forest: &mut Forest<'_>,
        state: &mut ChainState,
        turn: &mut Turn<'_>,
    ) -> Result<Info> {
        let GuidedSettings { evenness, scans, .. } = self.settings;
        match kind {
            Global::Subtree => subtree::propose(forest, evenness, state, turn),
            Global::Launched => launched::propose(forest, Launch { scans, evenness }, state, turn),
            Global::Published => published::propose(forest, evenness, state, turn),
        }
    }

    /// Makes the moves of single rows.
    fn local(&self, forest: &mut Forest<'_>, state: &mut ChainState, turn: &mut Turn<'_>) -> Result<Vec<Info>> {
        let GuidedSettings { depth, evenness, exact, guided, subset, .. } = self.settings;
        if !exact {
            return Ok(vec![published::visit(forest, depth, evenness, state, turn)?]);
        }
        if !guided {
            return CollapsedGibbs { subset }.step(state, turn);
        }
        let n_visits = subset.unwrap_or(turn.target.n_rows());
        let mut attempts = Attempts::default();
        for _ in 0..n_visits {
            turn.cancel.check()?;
            attempts += local::guided(forest, depth, evenness, state, turn)?;
        }
        Ok(vec![Info { name: "guided", attempts }])
    }
}

impl Collapsed for TreeGuided {
    /// Builds the guide: trees over all rows by incremental clustering in random order, joined to one tree.
    fn prepare(&mut self, target: &Target, seed: u64, cancel: &Cancel) -> Result<()> {
        let mut generator = stream(seed, Purpose::Trees, 1);
        let process = first_process(target, target.process.augments(), &mut generator)?;
        // Steps build trees over all rows, too.
        let mut arena = Arena::with_room(target, &process, "sampler", INSTEAD)?;
        if self.settings.fresh {
            self.law = Some(TreeLaw::Fresh(process));
            return Ok(());
        }
        let order = permutation(target.n_rows() as u32, &mut generator);
        let mut forest = Vec::new();
        incremental(&mut arena, &mut forest, &order, cancel)?;
        let root = join_on_top(&mut arena, forest, cancel)?;
        self.law = Some(TreeLaw::Guide(Restrictions::new(shape(&arena, root).0)));
        Ok(())
    }

    fn step(&self, state: &mut ChainState, turn: &mut Turn<'_>) -> Result<Vec<Info>> {
        let mut turn = Turn { target: turn.target, draws: &mut *turn.draws, cancel: turn.cancel };
        let mut forest = self.forest(state, &mut turn)?;
        let mut infos: Vec<Info> = Vec::new();
        for number in 0..self.settings.global_moves {
            turn.cancel.check()?;
            let kind = match number % 2 {
                _ if !self.settings.exact => Global::Published,
                0 => Global::Subtree,
                _ => Global::Launched,
            };
            let made = self.global(kind, &mut forest, state, &mut turn)?;
            match infos.iter_mut().find(|info| info.name == made.name) {
                Some(info) => info.attempts += made.attempts,
                None => infos.push(made),
            }
        }
        infos.extend(self.local(&mut forest, state, &mut turn)?);
        if !self.settings.exact {
            state.trees = forest.written();
        }
        Ok(infos)
    }

    fn check_room(&self, target: &Target, at_once: usize) -> Result<()> {
        let n = target.n_rows();
        let nursery = if self.settings.fresh { n } else { 0 };
        let of_one = (most_inner(target) + nursery).saturating_mul(target.empty.len());
        check_room(of_one.saturating_mul(at_once), |size| {
            let found = format!("trees over {n} rows in {at_once} chains at once, whose statistics take {size}");
            Error::invalid("sampler", found, INSTEAD)
        })
    }

    fn check(&self, n_rows: usize) -> Result<()> {
        check_subset(self.settings.subset, n_rows)
    }
}

#[cfg(test)]
mod tests;
