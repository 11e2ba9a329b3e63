//! Results of a fitted topic model (mathematics 11.7).

use crate::data::{RowUnits, Rows};
use crate::error::{Error, Result};
use crate::fitted::Fitted;
use crate::grounds::{check_numbers, check_values};
use crate::likelihood::Estimate;
use crate::local_step::{ByDocument, DocumentOptions, DocumentWords, Keep, LocalStep, TopicTable};
use crate::parallel::{Cancel, map};
use crate::parameters::Value;
use crate::responsibilities::RowBest;
use crate::room::check_room;
use crate::simd::{Instructions, Lines, Scalar};

/// Options for the proportions of new documents: converges to float32 precision.
const NEW_DOCUMENTS: DocumentOptions = DocumentOptions { max_steps: 500, tolerance: 1e-3, warm: false, restarts: 0 };

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
