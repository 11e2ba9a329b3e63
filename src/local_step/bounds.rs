//! Distance bounds of a batch, kept between visits in the order in which the rows were last scored.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::component::ComponentId;
use crate::scoring::Drift;

/// Distance bounds of all rows of a batch. Results do not depend on them, so they may be dropped at any time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Bounds {
    chunks: Vec<BoundedChunk>,
}

/// Distance bounds of one chunk.
#[derive(Debug, Clone, Default, PartialEq)]
struct BoundedChunk {
    /// The smallest unit index.
    first: usize,
    /// The unit of each row of `values`.
    units: Vec<u32>,
    /// The component of each column of `values`.
    ids: Vec<ComponentId>,
    /// How far each component has moved since the bounds were computed, (K,).
    drifts: Vec<Drift>,
    /// (units, K), see [`crate::scoring::PairBounds`].
    values: Vec<u16>,
}

/// The distance bounds of a chunk when it is visited again.
pub(super) struct Known<'a> {
    chunk: Option<&'a BoundedChunk>,
    /// The first unit of the chunk.
    first: usize,
    /// The row of each unit in the stored bounds.
    places: Vec<u32>,
    /// The stored column of each component, if it has one. `None` if the columns are unchanged.
    columns: Option<Vec<Option<usize>>>,
    /// How far each component has moved, (K,).
    pub drifts: Vec<Drift>,
}

impl Bounds {
    /// Bytes for `n` units and `k` components with at most `chunk` units visited at a time: during a visit the old and
    /// the new bounds of a chunk coexist.
    pub fn bytes_for(n: usize, chunk: usize, k: usize) -> usize {
        (n + chunk.min(n)) * (size_of::<u32>() + k * size_of::<u16>())
    }

    /// Records how far the components have moved. A component missing from `moved` loses its bounds.
    pub fn drift(&mut self, moved: &BTreeMap<ComponentId, Drift>) {
        for chunk in &mut self.chunks {
            for (id, drift) in chunk.ids.iter().zip(&mut chunk.drifts) {
                *drift = drift.then(moved.get(id).copied().unwrap_or(Drift::ANY));
            }
        }
    }

    /// Memory held, in bytes.
    pub fn bytes(&self) -> usize {
        let of_chunk = |chunk: &BoundedChunk| 4 * chunk.units.capacity() + 2 * chunk.values.capacity();
        self.chunks.iter().map(of_chunk).sum()
    }

    /// The stored bounds of chunk `index` with these units, for these components.
    pub(super) fn known(&self, index: usize, units: Range<usize>, ids: &[ComponentId]) -> Known<'_> {
        let nothing =
            Known { chunk: None, first: 0, places: Vec::new(), columns: None, drifts: vec![Drift::ANY; ids.len()] };
        let Some(chunk) =
            self.chunks.get(index).filter(|chunk| chunk.first == units.start && chunk.units.len() == units.len())
        else {
            return nothing;
        };
        let mut places = vec![0; units.len()];
        chunk.units.iter().zip(0..).for_each(|(&unit, place)| places[unit as usize - units.start] = place);
        let first = units.start;
        if chunk.ids == ids {
            return Known { chunk: Some(chunk), first, places, columns: None, drifts: chunk.drifts.clone() };
        }
        let columns: Vec<_> = ids.iter().map(|id| chunk.ids.iter().position(|other| other == id)).collect();
        let drifts = columns.iter().map(|column| column.map_or(Drift::ANY, |column| chunk.drifts[column])).collect();
        Known { chunk: Some(chunk), first, places, columns: Some(columns), drifts }
    }

    /// Stores the bounds computed during a visit.
    pub(super) fn put(&mut self, index: usize, first: usize, units: Vec<u32>, ids: &[ComponentId], values: Vec<u16>) {
        if self.chunks.len() <= index {
            self.chunks.resize_with(index + 1, BoundedChunk::default);
        }
        self.chunks[index] =
            BoundedChunk { first, units, ids: ids.to_vec(), drifts: vec![Drift::NONE; ids.len()], values };
    }
}

impl Known<'_> {
    /// Copies the bounds of listed units, one row per unit.
    pub fn copy(&self, listed: &[u32], out: &mut [u16]) {
        let Some(chunk) = self.chunk else { return };
        let (from, to) = (chunk.ids.len(), self.drifts.len());
        for (&unit, out) in listed.iter().zip(out.chunks_exact_mut(to)) {
            let place = self.places[unit as usize - self.first] as usize;
            let values = &chunk.values[place * from..][..from];
            match &self.columns {
                None => out.copy_from_slice(values),
                Some(columns) => {
                    for (out, column) in out.iter_mut().zip(columns) {
                        *out = column.map_or(0, |column| values[column]);
                    }
                }
            }
        }
    }
}
