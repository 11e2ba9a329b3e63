//! Rows copied out of their batches.

use serde::{Deserialize, Serialize};

use crate::data::{Csr, Nodes, RowUnits, Rows};
use crate::real::Real;

/// Copies of rows with their masses, or of nodes. Values are stored as f64, which represents every f32 exactly.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    n_columns: usize,
    masses: Vec<f64>,
    /// Values row by row; for sparse rows only stored values.
    values: Vec<f64>,
    /// The columns of `values` and the offset of each row, if rows are sparse.
    sparse: Option<(Vec<u32>, Vec<u64>)>,
    /// The nodes, if the sample consists of nodes; there are then no values.
    nodes: Option<Nodes>,
}

impl Sample {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.masses.len()
    }

    /// Whether the sample is empty.
    pub fn is_empty(&self) -> bool {
        self.masses.is_empty()
    }

    /// Masses of the rows.
    pub fn masses(&self) -> &[f64] {
        &self.masses
    }

    /// The nodes, if the sample consists of nodes.
    pub fn nodes(&self) -> Option<&Nodes> {
        self.nodes.as_ref()
    }

    /// Whether the parts are consistent, since files are not trusted.
    pub fn fits(&self) -> bool {
        if let Some(nodes) = &self.nodes {
            return nodes.fits() && nodes.len() == self.len() && self.values.is_empty() && self.sparse.is_none();
        }
        match &self.sparse {
            None => self.values.len() == self.len() * self.n_columns,
            Some((columns, starts)) => {
                let ends = (starts.first(), starts.last()) == (Some(&0), Some(&(self.values.len() as u64)));
                let inside = columns.iter().all(|&column| (column as usize) < self.n_columns);
                ends && inside
                    && starts.is_sorted()
                    && starts.len() == self.len() + 1
                    && columns.len() == self.values.len()
            }
        }
    }

    /// Whether rows of both can be in one sample.
    pub fn goes_with(&self, other: &Self) -> bool {
        let kind = |sample: &Self| (sample.n_columns, sample.sparse.is_some(), sample.nodes.is_some());
        kind(self) == kind(other)
    }

    /// Copies the listed units.
    pub fn extend<F: Real>(&mut self, units: &RowUnits<'_, F>, list: &[u32]) {
        self.n_columns = units.dimension();
        self.masses.extend(list.iter().map(|&unit| units.mass(unit as usize)));
        if let Some(csr) = units.csr() {
            let (columns, starts) = self.sparse.get_or_insert_with(|| (Vec::new(), vec![0]));
            for &unit in list {
                for (column, value) in csr.entries(units.row_number(unit as usize), self.n_columns) {
                    columns.push(column);
                    self.values.push(value.to_f64());
                }
                starts.push(self.values.len() as u64);
            }
        } else {
            let mut rows = vec![F::ZERO; list.len() * self.n_columns];
            units.read(list.iter().map(|&unit| unit as usize), &vec![F::ZERO; self.n_columns], &mut rows);
            self.values.extend(rows.iter().map(|value| value.to_f64()));
        }
    }

    /// Copies the listed units with their masses multiplied by `factor`.
    pub fn extend_weighted<F: Real>(&mut self, units: &RowUnits<'_, F>, list: &[u32], factor: f64) {
        let first = self.masses.len();
        self.extend(units, list);
        self.masses[first..].iter_mut().for_each(|mass| *mass *= factor);
    }

    /// Copies nodes.
    pub fn extend_nodes(&mut self, nodes: &Nodes) {
        self.masses.extend_from_slice(nodes.masses());
        match &mut self.nodes {
            Some(present) => present.append(nodes),
            present => *present = Some(nodes.clone()),
        }
    }

    /// Returns the listed rows, in that order.
    #[must_use]
    pub fn pick(&self, list: &[usize]) -> Self {
        let mut picked = Self::default();
        picked.extend_from(self, list);
        picked
    }

    /// Appends the listed rows of `other`, in that order.
    pub fn extend_from(&mut self, other: &Self, list: &[usize]) {
        self.n_columns = other.n_columns;
        self.masses.extend(list.iter().map(|&row| other.masses[row]));
        if let Some(nodes) = &other.nodes {
            let picked = nodes.pick(list.iter().copied());
            match &mut self.nodes {
                Some(present) => present.append(&picked),
                present => *present = Some(picked),
            }
        } else if let Some((columns, starts)) = &other.sparse {
            let (present, ends) = self.sparse.get_or_insert_with(|| (Vec::new(), vec![0]));
            for &row in list {
                let range = starts[row] as usize..starts[row + 1] as usize;
                present.extend_from_slice(&columns[range.clone()]);
                self.values.extend_from_slice(&other.values[range]);
                ends.push(present.len() as u64);
            }
        } else {
            let d = other.n_columns;
            for &row in list {
                self.values.extend_from_slice(&other.values[row * d..][..d]);
            }
        }
    }

    /// Appends the rows of `other`.
    pub fn append(&mut self, other: Self) {
        if self.is_empty() {
            *self = other;
            return;
        }
        if let (Some((columns, starts)), Some((theirs, ends))) = (&mut self.sparse, other.sparse) {
            let first = self.values.len() as u64;
            columns.extend(theirs);
            starts.extend(ends.iter().skip(1).map(|end| first + end));
        }
        if let (Some(nodes), Some(theirs)) = (&mut self.nodes, &other.nodes) {
            nodes.append(theirs);
        }
        self.masses.extend(other.masses);
        self.values.extend(other.values);
    }

    /// The rows, unless they are nodes, as units with their masses multiplied by `factor`.
    pub fn units<F: Real>(&self, factor: f64) -> RowUnits<'static, F> {
        let rows = Copied {
            n_rows: self.len(),
            n_columns: self.n_columns,
            values: self.values.iter().map(|&value| F::from_f64(value)).collect(),
            sparse: self.sparse.clone(),
        };
        RowUnits::owned(Box::new(rows), Some(self.masses.iter().map(|mass| factor * mass).collect()))
    }
}

struct Copied<F> {
    n_rows: usize,
    n_columns: usize,
    values: Vec<F>,
    sparse: Option<(Vec<u32>, Vec<u64>)>,
}

impl<F: Real> Rows<F> for Copied<F> {
    fn n_rows(&self) -> usize {
        self.n_rows
    }

    fn n_columns(&self) -> usize {
        self.n_columns
    }

    fn csr(&self) -> Option<Csr<'_, F>> {
        self.sparse.as_ref().map(|(columns, starts)| Csr { starts, columns, values: &self.values })
    }

    fn read_row(&self, row: usize, out: &mut [F]) {
        match self.csr() {
            None => out.copy_from_slice(&self.values[row * self.n_columns..][..self.n_columns]),
            Some(csr) => {
                out.fill(F::ZERO);
                let (columns, values) = csr.row(row);
                columns.iter().zip(values).for_each(|(&column, &value)| out[column as usize] += value);
            }
        }
    }
}
