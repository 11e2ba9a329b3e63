//! What two components would be as one, if the statistics of a row depend on the component that it is under: the sums
//! of their rows under the component that they would become (mathematics 4.11). The sum of their statistics is only a
//! lower bound.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::component::ComponentId;
use crate::data::RowBlock;
use crate::error::Result;
use crate::global_step::Globals;
use crate::local_step::{Assign, BlockMut, FromPairs, Keep, Listed, LocalStep, Space, Units};
use crate::memo::Memo;
use crate::model::Model;
use crate::moves::row_pairs::RowPairs;
use crate::moves::seen::SeenBlock;
use crate::moves::{Part, Visited};
use crate::scoring::{Completing, Scorer};
use crate::simd::Scalar;
use crate::suffstats::{Sufficient, Summary};

/// Pairs and the components that they would become.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct JoinedPairs {
    pairs: Vec<(ComponentId, ComponentId)>,
    /// One component for each pair, whose identity is the position of the pair.
    components: Option<Globals>,
}

/// The sums of the rows of pairs: for each batch and pair, count and statistics.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct JoinedRows {
    batches: Vec<(u32, Summary)>,
}

/// The sums of one pair.
pub(super) struct JoinedPair {
    /// Over all batches.
    pub total: Part,
    /// The statistics in each batch.
    pub batches: Vec<(usize, Vec<f64>)>,
}

impl JoinedPairs {
    /// These pairs of components of a summary.
    pub fn new<F: Scalar>(model: &Model<F>, total: &Summary, pairs: Vec<(ComponentId, ComponentId)>) -> Self {
        let ids = (0..pairs.len() as u32).map(ComponentId).collect();
        let mut sums = Summary::empty(ids, total.n_statistics, false);
        let places: BTreeMap<ComponentId, usize> = total.ids.iter().copied().zip(0..).collect();
        for (index, (a, b)) in pairs.iter().enumerate() {
            sums.add_component(index, total, places[a]);
            sums.add_component(index, total, places[b]);
        }
        Self { components: (!pairs.is_empty()).then(|| Globals::new(model, &sums, 0)), pairs }
    }

    /// Number of pairs.
    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    /// The sums of the rows of a visit, whose responsibilities for both components of a pair count together.
    ///
    /// # Errors
    /// As [`LocalStep::run`].
    pub fn look<F: Scalar>(&self, visited: &Visited<'_, F>) -> Result<JoinedRows> {
        let Some(components) = &self.components else { return Ok(JoinedRows::default()) };
        let look = visited.look;
        let mut pairs_of: Vec<Vec<u32>> = vec![Vec::new(); look.ids.len() + 1];
        for (index, (a, b)) in (0..).zip(&self.pairs) {
            for place in [a, b].into_iter().filter_map(|id| visited.places.get(id)) {
                pairs_of[*place as usize].push(index);
            }
        }
        let (mut units, mut shares) = (Vec::new(), Vec::new());
        for (unit, found, values) in look.seen.blocks().iter().flat_map(SeenBlock::units) {
            let mut of_unit: BTreeMap<u32, f64> = BTreeMap::new();
            for (component, value) in found.iter().zip(values) {
                for &pair in &pairs_of[*component as usize] {
                    *of_unit.entry(pair).or_default() += value;
                }
            }
            if !of_unit.is_empty() {
                units.push(unit as u32);
                shares.push(of_unit);
            }
        }
        let width = shares.iter().map(BTreeMap::len).max().unwrap_or(1);
        let mut pairs =
            RowPairs { width, components: vec![0; units.len() * width], values: vec![0.0; units.len() * width] };
        for (row, of_unit) in shares.into_iter().enumerate() {
            for (slot, (pair, value)) in of_unit.into_iter().enumerate() {
                pairs.components[row * width + slot] = pair;
                pairs.values[row * width + slot] = value.min(1.0);
            }
        }
        let scorer = components.scorer_without_tail(look.model)?;
        let (likelihood, assign) =
            (look.model.likelihood.as_ref(), Under { pairs: pairs.assign(), scorer: scorer.as_ref() });
        let step =
            LocalStep { likelihood, ids: &components.ids, assign: &assign, keep: Keep::Summary, cancel: look.cancel };
        let sums = step.run(look.units.select(&units).as_ref(), None, &mut [])?.summary;
        Ok(JoinedRows { batches: vec![(look.batch as u32, sums)] })
    }

    /// The sums of each pair.
    pub fn sums(&self, rows: &JoinedRows) -> BTreeMap<(ComponentId, ComponentId), JoinedPair> {
        let of = |(index, pair): (usize, &(ComponentId, ComponentId))| {
            let parts = rows.batches.iter().map(|(batch, sums)| (*batch as usize, sums.component(index)));
            let batches: Vec<(usize, Sufficient<'_>)> = parts.collect();
            let total =
                batches.iter().map(|(_, sums)| Part { count: sums.count, statistics: sums.statistics.to_vec() });
            let total = total.reduce(|sum, one| sum.with(&one))?;
            let batches = batches.iter().map(|(batch, sums)| (*batch, sums.statistics.to_vec())).collect();
            Some((*pair, JoinedPair { total, batches }))
        };
        self.pairs.iter().enumerate().filter_map(of).collect()
    }

    /// Whether these can be pairs of the components `ids`, since files may hold anything.
    pub fn fits(&self, ids: &[ComponentId], n_statistics: usize) -> bool {
        let n = self.components.as_ref().map_or(0, |components| components.ids.len());
        let statistics = self.components.as_ref().map_or(0, |components| components.statistics.len());
        self.pairs.iter().all(|(a, b)| ids.contains(a) && ids.contains(b))
            && (n, statistics) == (self.pairs.len(), self.pairs.len() * n_statistics)
    }
}

impl JoinedRows {
    /// Adds the sums of other rows.
    ///
    /// # Errors
    /// If they are sums of other pairs.
    pub fn append(&mut self, other: Self) -> Result<()> {
        for (batch, sums) in other.batches {
            // Batches may have several shards.
            match self.batches.iter_mut().find(|(known, _)| *known == batch) {
                Some((_, sum)) => sum.add(&sums)?,
                None => self.batches.push((batch, sums)),
            }
        }
        Ok(())
    }

    /// Whether visits can have found these for `n` pairs.
    pub fn fits(&self, n: usize, n_statistics: usize, n_batches: usize) -> bool {
        let ids: Vec<ComponentId> = (0..n as u32).map(ComponentId).collect();
        self.batches.iter().all(|(batch, sums)| (*batch as usize) < n_batches && sums.fits(&ids, n_statistics))
    }
}

impl JoinedPair {
    /// Gives the merged component these sums in every batch.
    ///
    /// # Errors
    /// If the component is unknown.
    pub fn put(&self, memo: &mut Memo, id: ComponentId) -> Result<()> {
        self.batches.iter().try_for_each(|(batch, statistics)| memo.restate(*batch, id, statistics))
    }
}

/// Given responsibilities, under components.
struct Under<'a, F: Scalar> {
    pairs: FromPairs<'a>,
    scorer: &'a dyn Scorer<F>,
}

impl<F: Scalar> Assign<F> for Under<'_, F> {
    fn width(&self) -> usize {
        self.pairs.width
    }

    fn completing(&self) -> Option<&dyn Completing> {
        self.scorer.completing()
    }

    fn assign(
        &self,
        units: &dyn Units<F>,
        listed: Listed<'_>,
        rows: RowBlock<'_, F>,
        out: BlockMut<'_>,
        space: &mut Space<F>,
    ) -> Result<()> {
        self.pairs.assign(units, listed, rows, out, space)
    }
}
