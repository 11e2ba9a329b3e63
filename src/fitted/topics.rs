//! Results of a fitted topic model (mathematics 11.7).

use crate::data::{RowUnits, Rows};
use crate::error::{Error, Result};
use crate::fitted::Fitted;
use crate::grounds::{check_numbers, check_values};
use crate::likelihood::Estimate;
use crate::local_step::{ByDocument, DocumentOptions, DocumentWords, Keep, LocalStep, TopicTable};
use crate::parallel::{Cancel, map, try_map};
use crate::parameters::Value;
use crate::responsibilities::RowBest;
use crate::room::check_room;
use crate::simd::{Instructions, Lines, Scalar};

/// Options for the proportions of new documents: converges to float32 precision.
const NEW_DOCUMENTS: DocumentOptions = DocumentOptions { max_steps: 500, tolerance: 1e-3, warm: false, restarts: 0 };

/// How the proportions of a partly observed document are estimated (mathematics 11.7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completion {
    /// The fixed point of `theta_k` proportional to `N_k + a`, whose objective has a single maximum.
    Map,
    /// Mean-field variational inference.
    Variational,
    /// Maximum likelihood.
    Ml,
}

impl Completion {
    /// Returns the method with that name.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "map" => Some(Self::Map),
            "vb" => Some(Self::Variational),
            "ml" => Some(Self::Ml),
            _ => None,
        }
    }
}

/// Lower limit of the probability of a word in a topic in document completion.
const FLOOR: f64 = 1e-12;
/// Maximum number of iterations, and the change of a count below which they end.
const TURNS: usize = 500;
const SETTLED: f64 = 1e-3;

impl Fitted {
    /// Returns the expected probabilities of words in topics, (K, V).
    ///
    /// # Errors
    /// As [`Fitted::model`].
    pub fn topics(&self) -> Result<Vec<f64>> {
        let model = self.model::<f64>()?;
        let found = model.likelihood.point_estimates(&self.summary.components(), Estimate::Mean)?;
        Ok(match found.0.into_values().next() {
            Some(Value::Array { data, .. }) => data,
            _ => Vec::new(),
        })
    }

    /// Returns the pseudo-counts of the topics in every document, (K,).
    ///
    /// # Errors
    /// As [`Fitted::model`], and [`Error::NotSupported`] for a mixture.
    pub fn document_prior(&self) -> Result<Vec<f64>> {
        let missing = || Error::not_supported("fit", "topics of a mixture", "it has none", "a fit of a TopicModel");
        self.allocation()?.of_documents.ok_or_else(missing)
    }

    /// Returns the expected proportions of topics in documents, (n, K), from the dense local step.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for `docs`; [`Error::Cancelled`].
    pub fn proportions<F: Scalar>(&self, rows: &dyn Rows<F>, cancel: &Cancel) -> Result<Vec<f64>> {
        self.check_documents(rows, "docs", cancel)?;
        let k = self.summary.n_components();
        check_room(rows.n_rows().saturating_mul(k), |size| {
            let found = format!("{} documents, whose proportions take {size}", rows.n_rows());
            Error::invalid("docs", found, "few enough documents at a time that their proportions fit in memory")
        })?;
        let prior = self.document_prior()?;
        let model = self.model::<F>()?;
        let words = DocumentWords::of(&RowUnits::all(rows, None));
        let mut used = vec![false; rows.n_columns()];
        words.words().iter().for_each(|&word| used[word as usize] = true);
        let (mut table, globals) = (TopicTable::default(), self.globals(&model));
        globals.fill_topics(&model, &used, &mut table)?;
        let assign = ByDocument::new(&words, &table, &prior, k, NEW_DOCUMENTS, None);
        let (likelihood, ids) = (model.likelihood.as_ref(), &globals.ids);
        LocalStep { likelihood, ids, assign: &assign, keep: Keep::Nothing, cancel }.run(&words, None, &mut [])?;
        Ok(assign.proportions())
    }

    /// Checks word counts of documents.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] naming `argument`, for a different vocabulary or invalid counts.
    pub fn check_documents<F: Scalar>(&self, rows: &dyn Rows<F>, argument: &str, cancel: &Cancel) -> Result<()> {
        check_numbers(argument, rows.n_rows())?;
        let v = self.n_data_columns();
        if rows.n_columns() != v {
            let found = format!("of {} words", rows.n_columns());
            return Err(Error::invalid(argument, found, format!("of {v} words, the vocabulary of the fit")));
        }
        check_values(&self.specification, rows, argument, cancel)
    }

    /// Returns the log probability of the words of each document in `held`, given proportions estimated from the same
    /// document in `given`, (n,), nats. `concentration` is the pseudo-count of a topic.
    ///
    /// # Errors
    /// As [`Fitted::proportions`].
    pub fn complete<F: Scalar>(
        &self,
        given: &dyn Rows<F>,
        held: &dyn Rows<F>,
        method: Completion,
        concentration: f64,
        cancel: &Cancel,
    ) -> Result<Vec<f64>> {
        self.check_documents(given, "test", cancel)?;
        self.check_documents(held, "test", cancel)?;
        let (k, v) = (self.summary.n_components(), self.n_data_columns());
        let topics = self.topics()?;
        // Topic probabilities by word, with the floor added and renormalised.
        let mut by_word = vec![0.0; k * v];
        for (topic, probabilities) in topics.chunks_exact(v).enumerate() {
            let total: f64 = probabilities.iter().map(|p| p + FLOOR).sum();
            by_word.iter_mut().skip(topic).step_by(k).zip(probabilities).for_each(|(to, p)| *to = (p + FLOOR) / total);
        }
        let (given, held) =
            (DocumentWords::of(&RowUnits::all(given, None)), DocumentWords::of(&RowUnits::all(held, None)));
        let row = |word: u32| &by_word[word as usize * k..][..k];
        try_map(given.n_documents(), |document| {
            cancel.check()?;
            let range = given.of_document(document);
            let (words, counts) = (&given.words()[range.clone()], &given.counts()[range]);
            let theta = complete_one(words, counts, row, k, method, concentration);
            let range = held.of_document(document);
            let of_word = |(&word, count): (&u32, &f64)| {
                let p: f64 = theta.iter().zip(row(word)).map(|(theta, phi)| theta * phi).sum();
                count * p.ln()
            };
            Ok(held.words()[range.clone()].iter().zip(&held.counts()[range]).map(of_word).sum())
        })
    }

    /// Returns the `n` most probable words of each topic, best first, (K, n); ties go to the lower index.
    ///
    /// # Errors
    /// As [`Fitted::model`].
    pub fn top_words(&self, n: usize) -> Result<Vec<u32>> {
        let (topics, v) = (self.topics()?, self.n_data_columns());
        let lists = map(self.summary.n_components(), |topic| {
            let mut padded = Lines::default();
            padded.reset(v.next_multiple_of(f64::GROUP), 0.0);
            padded[..v].copy_from_slice(&topics[topic * v..][..v]);
            let mut best = RowBest::default();
            Instructions::widest().run(ListBest { all: &padded, width: n.min(v), best: &mut best });
            best.components
        });
        Ok(lists.concat())
    }
}

/// [`RowBest::list`], compiled for each instruction set.
struct ListBest<'a> {
    all: &'a [f64],
    width: usize,
    best: &'a mut RowBest<f64>,
}

impl pulp::WithSimd for ListBest<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, simd: S) {
        self.best.list(simd, self.all, self.width, &[]);
    }
}

/// The proportions of one document, (K,).
fn complete_one<'a>(
    words: &[u32],
    counts: &[f64],
    row: impl Fn(u32) -> &'a [f64],
    k: usize,
    method: Completion,
    concentration: f64,
) -> Vec<f64> {
    let mut weights = vec![1.0; k];
    let mut found = vec![f64::NEG_INFINITY; k];
    for _ in 0..TURNS {
        let mut next = vec![0.0; k];
        for (&word, count) in words.iter().zip(counts) {
            let phi = row(word);
            let sum: f64 = weights.iter().zip(phi).map(|(w, p)| w * p).sum();
            let share = count / sum.max(1e-300);
            next.iter_mut().zip(phi).for_each(|(n, p)| *n += share * p);
        }
        next.iter_mut().zip(&weights).for_each(|(n, w)| *n *= w);
        let change = next.iter().zip(&found).fold(0.0_f64, |most, (n, before)| most.max((n - before).abs()));
        found = next;
        match method {
            Completion::Map => weights = found.iter().map(|n| n + concentration).collect(),
            Completion::Ml => weights.clone_from(&found),
            Completion::Variational => {
                let logs: Vec<f64> = found.iter().map(|n| crate::special::digamma(n + concentration)).collect();
                let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                weights = logs.iter().map(|log| (log - most).exp()).collect();
            }
        }
        if change < SETTLED {
            break;
        }
    }
    let added = if method == Completion::Ml { 0.0 } else { concentration };
    let total: f64 = found.iter().map(|n| n + added).sum();
    found.iter().map(|n| (n + added) / total).collect()
}
