//! The rows in which structure is sought where copies and weights hide it (mathematics 10.12): each distinct row once,
//! with a weight of at most one, in the order of the data, so that a table and its repetition lead to the same bits.

use crate::data::{Dataset, Moments, Repetition, Rows, TableRows, hash_of_row};
use crate::error::Result;
use crate::fit::Job;
use crate::fit::settings::{Cut, Settings};
use crate::hash::fingerprint;
use crate::init::Init;
use crate::parallel::Cancel;
use crate::simd::Scalar;

/// Some rows of a table.
struct ListedRows<'a, F: Scalar> {
    rows: &'a dyn Rows<F>,
    list: Vec<u32>,
}

impl<F: Scalar> Rows<F> for ListedRows<'_, F> {
    fn n_rows(&self) -> usize {
        self.list.len()
    }

    fn n_columns(&self) -> usize {
        self.rows.n_columns()
    }

    fn read_row(&self, row: usize, out: &mut [F]) {
        self.rows.read_row(self.list[row] as usize, out);
    }

    fn read_rows(&self, rows: &[usize], out: &mut [F]) {
        let rows: Vec<usize> = rows.iter().map(|&row| self.list[row] as usize).collect();
        self.rows.read_rows(&rows, out);
    }
}

/// The start of a search, if it is given by row.
enum GivenByRow {
    Nothing,
    Labels(Vec<u32>),
    Table(Vec<f64>),
}

/// The search rows of a job.
pub(super) struct SearchRows<'a, F: Scalar> {
    rows: ListedRows<'a, F>,
    weights: Option<Vec<f64>>,
    settings: Settings,
    init: GivenByRow,
}

impl<F: Scalar> Job<'_, F> {
    /// The rows in which structure is sought, if they are not all with their weights: only a search for the number of
    /// components is led astray by copies.
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`].
    pub(super) fn search_rows(&self, data: &Moments, cancel: &Cancel) -> Result<Option<SearchRows<'_, F>>> {
        let Job { rows, settings, .. } = *self;
        let searches = settings.moves.grow() && settings.max_passes > 0;
        let Some(table) = rows.table().filter(|_| searches && data.repeats.hides_structure()) else { return Ok(None) };
        let times = (data.repeats.rows == Repetition::Copies).then_some(data.repeats.times);
        let (list, weights) = listed(rows, settings.labels.as_deref(), times, cancel)?;
        let picked = |values: &[i64]| list.iter().map(|&row| values[row as usize]).collect::<Vec<i64>>();
        let n = list.len();
        let settings = Settings {
            n_components: settings.n_components.map(|k| k.min(n)),
            batches: match settings.batches {
                Cut::Number(batches) => Cut::Number(batches.min(n)),
                Cut::Size(size) => Cut::Size(size.min(n)),
                Cut::Auto => Cut::Auto,
            },
            labels: settings.labels.as_ref().map(|labels| picked(labels).into()),
            ..settings.clone()
        };
        let init = match self.init {
            Init::Labels(labels) => GivenByRow::Labels(list.iter().map(|&row| labels[row as usize]).collect()),
            Init::Table(values) => {
                let k = values.len() / rows.n_rows();
                GivenByRow::Table(list.iter().flat_map(|&row| &values[row as usize * k..][..k]).copied().collect())
            }
            _ => GivenByRow::Nothing,
        };
        let is_weighted = weights.iter().any(|&weight| weight != 1.0);
        let rows = ListedRows { rows: table, list };
        Ok(Some(SearchRows { rows, weights: is_weighted.then_some(weights), settings, init }))
    }
}

impl<F: Scalar> SearchRows<'_, F> {
    /// Calls `fit` with the job of these rows.
    pub(super) fn with_job<T>(&self, of_all: &Job<'_, F>, fit: impl FnOnce(&Job<'_, F>) -> T) -> T {
        let rows = TableRows { rows: &self.rows, weights: self.weights.as_deref() };
        let by_row = match &self.init {
            GivenByRow::Nothing => None,
            GivenByRow::Labels(labels) => Some(Init::Labels(labels)),
            GivenByRow::Table(values) => Some(Init::Table(values)),
        };
        let init = by_row.as_ref().unwrap_or(of_all.init);
        fit(&Job { rows: &rows, init, settings: &self.settings, ..*of_all })
    }
}

/// The rows of positive weight, ascending, and their weights, at most one. If rows are copies, only the first of equal
/// rows with one label, or their share in one of as many equal tables.
fn listed<F: Scalar>(
    rows: &dyn Dataset<F>,
    labels: Option<&[i64]>,
    times: Option<usize>,
    cancel: &Cancel,
) -> Result<(Vec<u32>, Vec<f64>)> {
    let mut all: Vec<(u64, u32)> = Vec::with_capacity(rows.n_rows());
    rows.for_each_slab(1, &mut |units| {
        let d = units.dimension();
        let parts = units.map_blocks(&vec![F::ZERO; d], cancel, |range, values| {
            let keyed = |(unit, row): (usize, &[F])| {
                let number = units.row_number(unit);
                let label = labels.map(|labels| labels[number].cast_unsigned());
                let hash = label.map_or_else(|| hash_of_row(row), |label| fingerprint(hash_of_row(row), [label]));
                (units.mass(unit) > 0.0).then_some((hash, number as u32))
            };
            Ok(range.zip(values.chunks_exact(d)).filter_map(keyed).collect::<Vec<_>>())
        })?;
        all.extend(parts.into_iter().flatten());
        Ok(())
    })?;
    let weight = |row: u32| rows.weights().map_or(1.0, |weights| weights[row as usize]);
    let Some(times) = times else {
        return Ok(all.into_iter().map(|(_, row)| (row, weight(row).min(1.0))).unzip());
    };
    all.sort_unstable();
    let of_equal = |equal: &[(u64, u32)]| -> Vec<(u32, f64)> {
        let n_copies = if times > 1 { times } else { equal.len() };
        let of_copies = |copies: &[(u64, u32)]| {
            let mass: f64 = copies.iter().map(|&(_, row)| weight(row)).sum();
            (copies[0].1, mass.min(1.0))
        };
        equal.chunks(n_copies).map(of_copies).collect()
    };
    let mut distinct: Vec<(u32, f64)> = all.chunk_by(|(one, _), (other, _)| one == other).flat_map(of_equal).collect();
    distinct.sort_unstable_by_key(|(row, _)| *row);
    Ok(distinct.into_iter().unzip())
}
