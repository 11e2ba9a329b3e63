//! Preparation of a run before its first visit: sizes, the model with every parameter filled in, batches, and the first
//! position.

use std::sync::Arc;

use crate::component::{ComponentId, EditLog};
use crate::data::{
    BatchSource, Coordinates, Dataset, Moments, PartialLabels, RepeatedRows, SeenBatches, SeenRows, Sharding,
};
use crate::error::{Error, Result};
use crate::evidence;
use crate::executor::{Executor, InProcess, Remote, RunSetup};
use crate::fit::classes;
use crate::fit::position::Position;
use crate::fit::pulse::Pulse;
use crate::fit::settings::Settings;
use crate::fit::sizes::Sizes;
use crate::fit::stages::{BestState, NewStart, Stage};
use crate::fit::{DataAccess, Job, Run};
use crate::fitted::{Fitted, Packs};
use crate::grounds::{Grounds, check_form, check_numbers, check_same, survey};
use crate::hash::fingerprint;
use crate::identity::Identity;
use crate::init::{Beginning, Init};
use crate::memo::Memo;
use crate::model::{Model, Specification};
use crate::moves::{Bag, Move, Round};
use crate::parallel::Cancel;
use crate::parameters::Parameters;
use crate::registry::REPEATS;
use crate::rng::{Purpose, key};
use crate::simd::Scalar;
use crate::suffstats::Tail;
use crate::visits::LocalOptions;

/// A prepared run that has not begun.
pub(super) struct Prepared<'a, F: Scalar> {
    pub(super) job: &'a Job<'a, F>,
    pub(super) cancel: &'a Cancel,
    /// Settings of the run, with all that depends on the data decided.
    pub(super) settings: Settings,
    /// The coordinates of the rows, and the specification in them.
    pub(super) grounds: Grounds,
    pub(super) sharding: Sharding,
    pub(super) source: Box<dyn BatchSource<F> + 'a>,
    /// Fingerprints of the shards.
    prints: Vec<u64>,
    repeats: RepeatedRows,
    sizes: Sizes,
    pub(super) n_rows: usize,
    mass: f64,
    /// The classes of rows, if any is known.
    pub(super) labels: Option<PartialLabels>,
    /// The model built from the specification.
    pub(super) model: Model<F>,
    /// The identity that a checkpoint must share with the run.
    pub(super) identity: Identity,
    moves: Vec<&'a dyn Move<F>>,
}

impl<'a, F: Scalar> Prepared<'a, F> {
    /// Computes the moments of the data, unless they are known, and derives from them everything that depends on the
    /// data.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] and [`Error::NotSupported`] for an invalid job; [`Error::Source`];
    /// [`Error::Cancelled`].
    pub(super) fn new(job: &'a Job<'a, F>, surveyed: Option<&Moments>, cancel: &'a Cancel) -> Result<Self> {
        let Job { specification, rows, init, settings, .. } = *job;
        let kind = settings.units.kind::<F>();
        let labels = job.check_unread()?;
        let data = surveyed.map_or_else(|| survey(specification, rows, cancel), |data| Ok(data.clone()))?;
        let n = data.n_rows;
        if n < 2 && !rows.can_seek() {
            return Err(Error::invalid("data", format!("{n} rows"), "at least two rows"));
        }
        job.check_number(n)?;
        let sizes = Sizes::new(specification, init, settings, labels.as_ref(), kind.extent(rows, n)?)?;
        let units = settings.units.for_rows(n);
        let sparsity = kind.sparsity(settings.local.sparsity, sizes.components);
        let local = LocalOptions { sparsity, ..settings.local };
        let sharding = Sharding {
            n_batches: sizes.batches,
            shuffle: settings.shuffle.then_some(settings.seed),
            shard_rows: if units.kind::<F>().has_shards() { settings.shard_rows } else { usize::MAX },
        };
        let source = rows.batches(sharding)?;
        let earlier = if let Init::Summary { coordinates, .. } = init { Some(*coordinates) } else { None };
        let grounds = Grounds::of_survey(specification, rows, &data, earlier, Specification::resolve, cancel)?;
        let coordinates = Arc::clone(&grounds.coordinates);
        let source = Box::new(SeenBatches { source, coordinates, allowed: Some(grounds.specification.allowed()?) });
        let Grounds { coordinates, specification, origin, .. } = &grounds;
        let model: Model<F> = specification.build_in(origin.clone(), coordinates)?;
        settings.moves.check(model.likelihood.as_ref(), model.process.as_ref(), model.objective)?;
        let settings = Settings { local, units, ..settings.clone() };
        let identity = identity::<F>(&data, source.as_ref(), specification, init, &settings, sizes);
        let (moves, mass) = (job.settings.moves.list(), data.mass);
        let (prints, repeats) = (data.prints, data.repeats);
        Ok(Self {
            job,
            cancel,
            settings,
            grounds,
            sharding,
            source,
            prints,
            repeats,
            sizes,
            n_rows: n,
            mass,
            labels,
            model,
            identity,
            moves,
        })
    }

    /// Returns an executor of the batches, wherever their shards are.
    pub(super) fn executor(&self) -> Result<Box<dyn Executor + '_>> {
        let Some(ask) = self.job.ask else {
            return Ok(Box::new(self.executor_over(self.source.as_ref(), &self.model, self.settings.local)?));
        };
        let setup = RunSetup {
            specification: self.grounds.specification.clone(),
            coordinates: Coordinates::clone(&self.grounds.coordinates),
            origin: self.grounds.origin.clone(),
            options: self.settings.local,
            prints: self.prints.clone(),
        };
        let batches = (0..self.sizes.batches).map(|batch| self.source.shards(batch)).collect();
        Ok(Box::new(Remote::new(ask, batches, &setup)?))
    }

    /// Returns an executor of the batches of a source in this process, under some model.
    pub(super) fn executor_over<'b>(
        &'b self,
        source: &'b dyn BatchSource<F>,
        model: &Model<F>,
        local: LocalOptions,
    ) -> Result<InProcess<'b, F>> {
        let executor = InProcess::new(self.settings.units.kind(), model, source, local, self.cancel.clone())?;
        Ok(executor.with_classes(self.labels.as_ref().map(PartialLabels::rows)))
    }

    /// The inputs of the moves, if any.
    pub(super) fn round(&self) -> Option<Round<'_, F>> {
        let settings = self.job.settings;
        (!self.moves.is_empty()).then_some(Round {
            model: self.model.clone(),
            moves: &self.moves,
            sparsity: settings.local.sparsity,
            margin: settings.local.margin,
            seed: settings.seed,
            n_batches: self.sizes.batches,
            cancel: self.cancel,
        })
    }

    /// Returns the position of a new run.
    pub(super) fn start(&self) -> Result<Position> {
        let Job { rows, init, settings, .. } = *self.job;
        let k = self.sizes.components;
        let mut edits = EditLog::with_components(k);
        let mut memo = self.memo(&mut edits, init)?;
        let rows = SeenRows { rows, coordinates: &self.grounds.coordinates };
        if !self.model.has_tail() {
            memo.drop_tail();
        }
        // Otherwise rows get there once there is a component for every cluster: a density with heavy tails would take
        // the rows of clusters that have none yet.
        if self.model.background.is_some() && !settings.moves.grow() {
            memo.open_tail();
        }
        if settings.algorithm.estimates() {
            memo = memo.into_estimate(self.mass);
        }
        let base = self.first_base(&memo);
        let mut position = Position::first(memo, edits, base);
        if k == 1 && settings.moves.grow() {
            position.moves.start_from(ComponentId(0), first_rows(&rows, settings)?);
        }
        Ok(position)
    }

    /// The memo of a start with the components of `edits`, whose classes it sets.
    fn memo(&self, edits: &mut EditLog, init: &Init<'_>) -> Result<Memo> {
        let Job { rows, settings, .. } = *self.job;
        let ids = &edits.components()?;
        let beginning = Beginning {
            model: &self.model,
            data: &SeenRows { rows, coordinates: &self.grounds.coordinates },
            source: self.source.as_ref(),
            ids,
            keep: settings.local.keep,
            by_batch: !settings.algorithm.estimates(),
            mass: self.mass,
            seed: settings.seed,
            cancel: self.cancel,
        };
        let Some(labels) = &self.labels else { return beginning.memo(init) };
        let (memo, classes) = beginning.memo_of_classes(init, labels)?;
        ids.iter().zip(classes).for_each(|(&id, class)| edits.set_class(id, class));
        Ok(memo)
    }

    /// The base measure of the first pass: the default, or, for parameters that are estimated, that of the fit from
    /// which the run starts.
    fn first_base(&self, memo: &Memo) -> Parameters {
        let mut base = self.model.base.parameters.clone();
        let Job { init, settings, .. } = self.job;
        // Given labels must not be undone by moves of the first pass because the default base measure hides their
        // structure. Hence the base measure is estimated first.
        let may_undo = settings.max_passes > 0 && !settings.moves.is_empty() && !memo.is_estimate();
        if may_undo && matches!(init, Init::Labels(_) | Init::Table(_)) {
            return evidence::raise(&self.model, memo.total()).map_or(base, |(model, _)| model.base.parameters.clone());
        }
        let Init::Summary { specification, .. } = self.job.init else { return base };
        let free = self.grounds.specification.estimated.iter().flat_map(|estimated| &estimated.free);
        for name in free.filter(|_| specification.likelihood.name == self.grounds.specification.likelihood.name) {
            base.0
                .extend(specification.likelihood.parameters.0.get_key_value(name).map(|(n, v)| (n.clone(), v.clone())));
        }
        base
    }

    /// Reads the position from a checkpoint and passes its local states to the executor.
    ///
    /// # Errors
    /// [`Error::Checkpoint`] for a checkpoint of a different run, or a damaged one.
    pub(super) fn resume(&self, bytes: &[u8], executor: &mut dyn Executor) -> Result<Position> {
        let (position, states) = self.identity.read(bytes, self.sizes.batches, self.model.likelihood.n_statistics())?;
        if position.memo.is_estimate() != self.job.settings.algorithm.estimates() {
            return Err(Error::Checkpoint { message: "it is damaged: what its batches remember".into() });
        }
        if !classes::fits(&position.edits, &position.memo.total().ids, self.labels.as_ref()) {
            return Err(Error::Checkpoint { message: "it is damaged: the classes of its components".into() });
        }
        executor.load_states(&states).map_err(|error| match error {
            Error::Format { message } => Error::Checkpoint { message: format!("it is damaged: {message}") },
            other => other,
        })?;
        Ok(position)
    }

    /// Converts the result of a run into a fit.
    pub(super) fn finish(&self, run: Run) -> Fitted {
        let local = self.settings.local;
        let n_more = self.sizes.columns - self.sizes.components;
        let mut summary = run.summary;
        if self.model.background.is_some() {
            summary.tail.get_or_insert_with(|| Tail::zeros(summary.n_statistics));
        }
        Fitted {
            coordinates: Arc::clone(&self.grounds.coordinates),
            lacks_rows: self.grounds.lacks_rows,
            origin: self.model.likelihood.origin().to_vec(),
            specification: self.grounds.specification.with_base(run.base),
            n_rows: self.n_rows,
            sparsity: local.sparsity.clamp(summary.n_components() + n_more),
            margin: local.margin,
            documents: self.settings.units.documents(),
            classes: self.labels.as_ref().map_or_else(Vec::new, |labels| labels.values(&run.classes)),
            summary,
            elbo: run.elbo,
            history: run.history,
            stop_reason: run.stop_reason,
            error: run.error,
            runner_up: None,
            repeats: self.repeats,
            searched: None,
            packs: Packs::default(),
        }
    }
}

impl<F: Scalar> Job<'_, F> {
    /// Refuses what can be refused before rows are read. Returns the labels.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] and [`Error::NotSupported`] for an invalid job.
    pub(super) fn check_unread(&self) -> Result<Option<PartialLabels>> {
        let Job { specification, rows, init, settings, .. } = *self;
        if rows.has_shards() {
            self.check_shards()?;
        }
        let labels = self.labels()?;
        // Whether units are nodes of a tree may not have been decided yet.
        let is_decided = settings.units.tree().is_none_or(|tree| !tree.on_trial);
        let kind = settings.units.kind::<F>();
        // A stream has to be read before its rows can be counted.
        if rows.can_seek() {
            self.check_number(rows.n_rows())?;
            if is_decided {
                Sizes::new(specification, init, settings, labels.as_ref(), kind.unread(rows.n_rows()))?;
            }
        }
        check_form(specification, rows.is_sparse())?;
        if is_decided {
            kind.check(&self.task())?;
        }
        Ok(labels)
    }

    /// Refuses more rows than can be numbered. Rows in shards are numbered by shard.
    fn check_number(&self, n: usize) -> Result<()> {
        if self.rows.has_shards() { Ok(()) } else { check_numbers("data", n) }
    }
}

impl<F: Scalar> DataAccess for Prepared<'_, F> {
    /// A stream compares every reading itself.
    fn check(&self) -> Result<()> {
        let Job { specification, rows, .. } = *self.job;
        if !rows.can_seek() {
            return Ok(());
        }
        check_same(survey(specification, rows, self.cancel), self.grounds.fingerprint)
    }

    fn other_start(&self, best: &BestState) -> Result<Option<NewStart>> {
        // Clusters of a tree have no classes.
        if self.labels.is_some() { Ok(None) } else { self.tree_start(best) }
    }

    fn rearranged(&self, best: &BestState, budget: usize, pulse: &mut Pulse<'_>) -> Result<Option<NewStart>> {
        let found = self.rearrange(best, budget, pulse)?;
        let start = |(total, classes)| NewStart { total, classes, base: best.base.clone(), stage: Stage::Rearranged };
        Ok(found.map(start))
    }
}

/// A random sample of all rows, from which the first parts of a single component are made.
fn first_rows<F: Scalar>(rows: &dyn Dataset<F>, settings: &Settings) -> Result<Bag> {
    let most = settings.moves.subsample().max_rows;
    let has_mass = |row: usize| rows.weights().is_none_or(|weights| weights[row] > 0.0);
    let mut keyed: Vec<(u64, u64)> = Vec::new();
    let mut last = u64::MAX;
    for row in (0..rows.n_rows()).filter(|&row| has_mass(row)) {
        let row_key = key(settings.seed, [Purpose::Collection as u64, u64::MAX, row as u64]);
        if row_key <= last {
            keyed.push((row_key, row as u64));
        }
        // Pruned from time to time, so that memory does not grow with the data.
        if keyed.len() >= 2 * most {
            keyed.sort_unstable();
            keyed.truncate(most);
            last = keyed[most - 1].0;
        }
    }
    keyed.sort_unstable();
    keyed.truncate(most);
    keyed.sort_unstable_by_key(|(_, row)| *row);
    let (keys, picked): (Vec<_>, Vec<_>) = keyed.into_iter().unzip();
    let units = rows.pick(&picked)?;
    let mut bag = Bag { keys, ..Bag::default() };
    bag.rows.extend(&units, &(0..units.len() as u32).collect::<Vec<_>>());
    Ok(bag)
}

/// Everything that must be equal to continue from a checkpoint with the same bits, except the length of the run.
fn identity<F: Scalar>(
    data: &Moments,
    source: &dyn BatchSource<F>,
    specification: &Specification,
    init: &Init<'_>,
    settings: &Settings,
    sizes: Sizes,
) -> Identity {
    // With a fixed number of components, "auto" stands for a fixed sparsity.
    let sparsity = settings.local.sparsity;
    let sparsity =
        if settings.moves.grow() { format!("{sparsity:?}") } else { sparsity.clamp(sizes.columns).to_string() };
    let repeats = specification.likelihood.parameters.number(REPEATS.name).ok().flatten().unwrap_or(1.0);
    let d = data.dimension() + repeats as usize - 1;
    let labels = settings.labels.as_ref().map_or_else(
        || "None".into(),
        |labels| format!("{:016x}", fingerprint(7, labels.iter().map(|label| label.cast_unsigned()))),
    );
    let pairs = [
        ("data", format!("{} x {d} {}, {:016x}", data.n_rows, F::NAME, data.fingerprint)),
        ("likelihood", format!("{:?}", specification.likelihood)),
        ("process", format!("{:?}", specification.process)),
        ("background", format!("{:?}", specification.background)),
        ("objective", specification.objective.name().into()),
        ("missing", specification.missing.to_string()),
        ("labels", labels),
        ("batches", sizes.batches.to_string()),
        ("shards", source.n_shards().unwrap_or(sizes.batches).to_string()),
        ("shuffle", settings.shuffle.to_string()),
        ("algorithm", settings.algorithm.name()),
        ("set of moves", settings.moves.name()),
        ("sparsity", sparsity),
        ("margin", settings.local.margin.map_or("None".into(), |margin| margin.to_string())),
        ("n_components", sizes.components.to_string()),
        ("init", format!("{:016x}", init.fingerprint())),
        ("seed", settings.seed.to_string()),
    ];
    let pairs = pairs.into_iter().chain(settings.units.kind::<F>().identity());
    Identity(pairs.map(|(name, value)| (name.to_owned(), value)).collect())
}
