//! Words as units, in groups that are documents (mathematics 11.3).

use serde::{Deserialize, Serialize};

use crate::component::EditLog;
use crate::data::Dataset;
use crate::error::{Error, Result};
use crate::global_step::Globals;
use crate::local_step::{ByDocument, DocumentCounts, DocumentOptions, DocumentWords, Outcome, Tap, TopicTable, Units};
use crate::responsibilities::Sparsity;
use crate::simd::Scalar;
use crate::visits::{Extent, Nouns, Shard, Task, UnitKind, Visitor, load_state, save_state};

/// Number of words per batch and maximum number of batches, if the user does not choose them.
const WORDS_A_BATCH: usize = 40_000;
const MOST_BATCHES: usize = 10;

/// Number of passes in which every document starts afresh. Otherwise the results of the first, poor topics would
/// persist in short documents.
const COLD_PASSES: usize = 2;

/// The nouns of topic models.
const NOUNS: Nouns =
    Nouns { components: "topics", units: "tokens (words, counted as often as they occur)", n_components: "n_topics" };

/// How sums over the batches visited so far are used in the first pass of a topic model (mathematics 11.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FirstPass {
    /// Unscaled.
    #[default]
    Plain,
    /// Scaled up to all data, by the inverse of the fraction of the documents visited so far.
    Scaled,
}

impl FirstPass {
    /// Public name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Scaled => "scaled",
        }
    }

    /// Returns the value with that name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Plain, Self::Scaled].into_iter().find(|value| value.name() == name)
    }
}

/// The words of documents are units.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WordOptions {
    /// Whether sums are scaled to all data in the first pass.
    pub first_pass: FirstPass,
    /// How documents are visited.
    pub visits: DocumentOptions,
}

impl Default for WordOptions {
    fn default() -> Self {
        Self { first_pass: FirstPass::default(), visits: DocumentOptions::USUAL }
    }
}

impl<F: Scalar> UnitKind<F> for WordOptions {
    fn check(&self, task: &Task<'_>) -> Result<()> {
        if task.specification.documents()?.is_none() {
            let reason = "its rows are not documents";
            return Err(Error::not_supported("units", "words for a Mixture", reason, "rows or a tree"));
        }
        Ok(())
    }

    fn unread(&self, n_rows: usize) -> Extent {
        Extent { rows: n_rows, units: usize::MAX, batches: 1, nouns: NOUNS }
    }

    fn extent(&self, rows: &dyn Dataset<F>, n_rows: usize) -> Result<Extent> {
        let units = n_words(rows)?;
        Ok(Extent { rows: n_rows, units, batches: (units / WORDS_A_BATCH).clamp(1, MOST_BATCHES), nouns: NOUNS })
    }

    fn sparsity(&self, asked: Sparsity, n_components: usize) -> Sparsity {
        asked.of_words(n_components)
    }

    fn identity(&self) -> Vec<(&'static str, String)> {
        let DocumentOptions { max_steps, tolerance, warm, restarts } = self.visits;
        let visits = format!("{max_steps} steps, tolerance {tolerance}, warm {warm}, {restarts} restarts");
        vec![("units", "words".into()), ("first_pass", self.first_pass.name().into()), ("visits of documents", visits)]
    }

    fn visitor(&self, n_shards: usize) -> Box<dyn Visitor<F>> {
        let states = vec![DocumentState::default(); n_shards];
        Box::new(DocumentVisits { options: self.visits, states, topics: TopicTable::default() })
    }
}

/// Total number of words in documents of positive weight.
fn n_words<F: Scalar>(rows: &dyn Dataset<F>) -> Result<usize> {
    let mut n = 0.0;
    rows.for_each_slab(1, &mut |units| {
        let words = DocumentWords::of(units);
        let has_mass = |word: &usize| words.weight(words.document_of(*word)) > 0.0;
        n += (0..words.counts().len()).filter(has_mass).map(|word| words.counts()[word]).sum::<f64>();
        Ok(())
    })?;
    if n > 0.0 {
        return Ok(n as usize);
    }
    Err(Error::invalid("data", "documents without a single word of positive weight", "documents with words"))
}

/// What is kept of the documents of a shard.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct DocumentState {
    /// Number of edits that have been replayed.
    version: usize,
    /// The counts of their topics after a complete visit.
    counts: Option<DocumentCounts>,
}

/// Visits documents.
pub struct DocumentVisits {
    options: DocumentOptions,
    states: Vec<DocumentState>,
    /// The topics of the last visit.
    topics: TopicTable,
}

impl<F: Scalar> Visitor<F> for DocumentVisits {
    fn visit(
        &mut self,
        shard: &Shard<'_, F>,
        globals: &Globals,
        edits: &EditLog,
        taps: &mut [&mut dyn Tap],
    ) -> Result<Outcome> {
        let documents = shard.rows()?;
        let (words, options) = (DocumentWords::of(documents), self.options);
        let mut used = vec![false; documents.dimension()];
        words.words().iter().for_each(|&word| used[word as usize] = true);
        globals.fill_topics(shard.model, &used, &mut self.topics)?;
        let pass = globals.version as usize / self.states.len();
        let state = &mut self.states[shard.index];
        state.replay(edits);
        let starts = match &state.counts {
            Some(counts) if options.warm && pass >= COLD_PASSES => {
                let positions = counts.positions(&globals.ids, words.n_documents());
                let unfit = || Error::Format { message: "the counts of its documents".into() };
                Some(positions.ok_or_else(unfit)?)
            }
            _ => None,
        };
        let n_topics = globals.n_components();
        let width = shard.options.sparsity.of_words(n_topics).clamp(n_topics);
        let prior = globals.allocation.of_documents.as_deref().unwrap_or_default();
        let assign = ByDocument::new(&words, &self.topics, prior, width, options, starts);
        let mut outcome = shard.assign(&words, &assign, globals, None, taps)?;
        let found = assign.finish(&globals.ids);
        outcome.summary.documents = Some(found.terms);
        outcome.work.restarts = found.restarts;
        state.counts = Some(found.memory);
        Ok(outcome)
    }

    fn show(
        &mut self,
        shard: &Shard<'_, F>,
        _seed: Option<u64>,
        take: &mut dyn FnMut(&dyn Units<F>) -> Result<()>,
    ) -> Result<()> {
        take(&DocumentWords::of(shard.rows()?))
    }

    fn forget(&mut self, _shard: usize) {}

    fn bytes(&self, shard: usize) -> usize {
        let state = &self.states[shard];
        size_of_val(state) + state.counts.as_ref().map_or(0, DocumentCounts::bytes)
    }

    fn save(&self, shard: usize) -> Result<Vec<u8>> {
        save_state(&self.states[shard])
    }

    fn load(&mut self, shard: usize, bytes: &[u8]) -> Result<()> {
        self.states[shard] = load_state(bytes)?;
        Ok(())
    }
}

impl DocumentState {
    /// Replays the edits that this state has not yet seen.
    fn replay(&mut self, log: &EditLog) {
        if let Some(counts) = &mut self.counts {
            log.ended_since(self.version).for_each(|(gone, heir)| counts.replace(gone, heir));
        }
        self.version = log.version();
    }
}
