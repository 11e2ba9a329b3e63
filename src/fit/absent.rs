//! Fits wide sparse rows without the columns in which no row has a value. Under a likelihood of counts these columns
//! are alike, so one column stands for all of them during the fit, and the result has them again.

use std::sync::Arc;

use crate::data::{Coordinates, Csr, CsrRows, TableRows};
use crate::error::{Error, Result};
use crate::events::Observer;
use crate::fit::{Job, Starts};
use crate::fitted::{Fitted, Packs, Resumed};
use crate::grounds::check_values;
use crate::hash::fingerprint;
use crate::init::Init;
use crate::likelihood;
use crate::model::Named;
use crate::parallel::Cancel;
use crate::parameters::{Parameters, Value, vector};
use crate::registry::{EXPOSURE, REPEATS};
use crate::room::check_room;
use crate::simd::Scalar;
use crate::suffstats::Summary;

/// Fewer columns without values than this cost little.
const LEAST_ABSENT: usize = 1000;

/// Rows of which most columns have no value.
struct Absent<'a, F> {
    table: Csr<'a, F>,
    /// The column of the fit of each column of the data, (D,).
    seen_as: Vec<u32>,
    /// Number of columns of the fit; the last one stands for all columns without a value.
    n_columns: usize,
}

impl<F: Scalar> Job<'_, F> {
    /// Fits from each start and keeps the fit with the highest objective. If the initial number of components is not
    /// given and can grow, every second start is wide; wide starts come after the others. An interrupt, a callback or a
    /// failing source ends all starts: the best fit so far is returned with that stop reason.
    ///
    /// # Errors
    /// As [`crate::fit::fit`], if no start has ended.
    pub fn best_of(
        &self,
        starts: Starts<'_>,
        resumed: Resumed<'_>,
        observer: &dyn Observer,
        cancel: &Cancel,
    ) -> Result<Fitted> {
        let Some(absent) = self.absent(cancel)? else { return self.best_of_columns(starts, resumed, observer, cancel) };
        let columns = absent.columns();
        let rows = CsrRows::new(Csr { columns: &columns, ..absent.table }, absent.n_columns)?;
        let rows = rows.with_layout(absent.layout());
        let rows = TableRows { rows: &rows, weights: self.rows.weights() };
        let n_repeats = absent.seen_as.len() - (absent.n_columns - 1);
        let given = &self.specification.likelihood.parameters;
        let parameters = given.with([(REPEATS.name, Value::Number(n_repeats as f64))]);
        let job = Job { specification: &self.specification.with_base(parameters), rows: &rows, ..*self };
        absent.widened(job.best_of_columns(starts, resumed, observer, cancel)?)
    }

    /// The columns without a value, if they are worth leaving out. Data that will be refused are left as they are, so
    /// that an error names their columns.
    fn absent(&self, cancel: &Cancel) -> Result<Option<Absent<'_, F>>> {
        let Named { name, parameters } = &self.specification.likelihood;
        let is_symmetric = parameters.0.values().all(|value| !matches!(value, Value::Array { .. }))
            && parameters.is_absent(EXPOSURE.name);
        let can_repeat =
            likelihood::entry(name)?.unlisted.contains(&REPEATS) && self.specification.documents()?.is_none();
        let starts_fresh = !matches!(self.init, Init::Summary { .. });
        let (d, Some(table)) = (self.rows.n_columns(), self.rows.csr()) else { return Ok(None) };
        let fits = check_room(d, |size| Error::invalid("data", size, "less")).is_ok();
        if !(is_symmetric && can_repeat && starts_fresh && fits) || d < LEAST_ABSENT {
            return Ok(None);
        }
        // Another thread may change the columns while they are read.
        let mut has_value = vec![false; d];
        for &column in table.columns {
            if let Some(mark) = has_value.get_mut(column as usize) {
                *mark = true;
            }
        }
        let n_present = has_value.iter().filter(|&&mark| mark).count();
        let is_valid = || check_values(self.specification, &CsrRows::new(table, d)?, "data", cancel);
        if d - n_present < n_present.max(LEAST_ABSENT) || is_valid().is_err() {
            return Ok(None);
        }
        let mut present = 0..n_present as u32;
        let column = |&mark: &bool| if mark { present.next() } else { None };
        let seen_as = has_value.iter().map(column).map(|column| column.unwrap_or(n_present as u32)).collect();
        Ok(Some(Absent { table, seen_as, n_columns: n_present + 1 }))
    }
}

impl<F: Copy> Absent<'_, F> {
    /// The columns of the values, as the fit sees them.
    fn columns(&self) -> Vec<u32> {
        let last = self.n_columns as u32 - 1;
        self.table.columns.iter().map(|&column| self.seen_as.get(column as usize).copied().unwrap_or(last)).collect()
    }

    /// A number in which rows differ that have their values in other columns.
    fn layout(&self) -> u64 {
        fingerprint(self.seen_as.len() as u64, self.seen_as.iter().map(|&column| u64::from(column)))
    }

    /// Values by column of the fit, as values by column of the data.
    fn widen(&self, values: &[f64]) -> Vec<f64> {
        self.seen_as.iter().map(|&column| values[column as usize]).collect()
    }

    /// The fit with all columns of the data.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for more components and columns than fit in memory.
    fn widened(&self, fitted: Fitted) -> Result<Fitted> {
        let (d, Summary { statistics, counts, .. }) = (self.seen_as.len(), &fitted.summary);
        check_room(counts.len().saturating_mul(d), |size| {
            let found = format!("{d} columns and {} components, {size}", counts.len());
            Error::invalid("data", found, "of few enough columns that components fit in memory")
        })?;
        let statistics = statistics.chunks_exact(self.n_columns).flat_map(|sums| self.widen(sums)).collect();
        let mut specification =
            fitted.specification.with_base(self.parameters(&fitted.specification.likelihood.parameters));
        if let Some(estimated) = &mut specification.estimated {
            estimated.start = self.parameters(&estimated.start);
        }
        Ok(Fitted {
            coordinates: Arc::new(Coordinates::identity(d)),
            specification,
            origin: vec![0.0; d],
            summary: Summary { statistics, n_statistics: d, ..fitted.summary },
            packs: Packs::default(),
            ..fitted
        })
    }

    /// The parameters of the columns of the data.
    fn parameters(&self, of_fit: &Parameters) -> Parameters {
        let mut parameters = of_fit.clone();
        parameters.0.remove(REPEATS.name);
        for value in parameters.0.values_mut() {
            if let Value::Array { data, .. } = value {
                *value = vector(self.widen(data));
            }
        }
        parameters
    }
}
