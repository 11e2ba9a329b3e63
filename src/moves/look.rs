//! What a visit does beside its local step on behalf of moves. It all hangs on the responsibilities of this very visit, which
//! is why sums over the batches of a pass are exact at its end.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::component::ComponentId;
use crate::data::Sample;
use crate::error::Result;
use crate::local_step::{Chunk, Tap, Units, pair_gap};
use crate::model::Model;
use crate::moves::deal::Dealt;
use crate::moves::delete::MOST_ROWS;
use crate::moves::plan::{Bag, Collect, Findings, Plan, SharedRows};
use crate::parallel::{Cancel, blocks, map, try_map};
use crate::responsibilities::Sparsity;
use crate::rng::name;
use crate::scoring::Scorer;
use crate::simd::Scalar;
use crate::suffstats::{PairGaps, Summary};

/// Units whose pairs are looked at together.
const BLOCK: usize = 4096;
/// What stands for the tail among labels.
pub(super) const TAIL: ComponentId = ComponentId(u32::MAX);

/// All responsibilities of a local step.
#[derive(Default)]
pub struct Seen {
    pub(super) units: Vec<u32>,
    pub(super) width: usize,
    pub(super) components: Vec<u32>,
    pub(super) values: Vec<f64>,
}

impl Tap for Seen {
    fn observe(&mut self, chunk: &Chunk<'_>) -> Result<()> {
        self.units.extend_from_slice(chunk.units);
        self.width = chunk.responsibilities.width;
        self.components.extend_from_slice(&chunk.responsibilities.components);
        self.values.extend_from_slice(&chunk.responsibilities.values);
        Ok(())
    }
}

/// The parts of every proposal of a plan, packed.
pub struct Packed<F: Scalar> {
    version: u64,
    pub(super) scorers: Vec<Box<dyn Scorer<F>>>,
}

impl<F: Scalar> Packed<F> {
    /// Packs the parts of a plan's proposals.
    ///
    /// # Errors
    /// [`crate::Error::Numerical`].
    pub fn new(model: &Model<F>, plan: &Plan) -> Result<Self> {
        let scorers = try_map(plan.proposals.len(), |at| plan.proposals[at].parts.scorer_without_tail(model))?;
        Ok(Self { version: plan.version, scorers })
    }

    /// Whether these are the parts of this plan.
    pub fn is_of(&self, plan: &Plan) -> bool {
        self.version == plan.version && self.scorers.len() == plan.proposals.len()
    }
}

/// Looks at a visit.
pub struct Look<'a, F: Scalar> {
    /// The model.
    pub model: &'a Model<F>,
    /// What to look for.
    pub plan: &'a Plan,
    /// The parts of its proposals.
    pub packed: &'a Packed<F>,
    /// The components of the visit in the order of their positions.
    pub ids: &'a [ComponentId],
    /// Components kept a unit.
    pub sparsity: Sparsity,
    /// Stops between blocks.
    pub cancel: &'a Cancel,
}

impl<F: Scalar> Look<'_, F> {
    /// What the plan looks for, in the visit of `batch`; gaps go into its summary.
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`]; [`crate::Error::Numerical`].
    pub fn at(&self, batch: usize, units: &dyn Units<F>, seen: &Seen, summary: &mut Summary) -> Result<Findings> {
        let places: HashMap<ComponentId, u32> = self.ids.iter().copied().zip(0..).collect();
        if !self.plan.pairs.is_empty() {
            summary.gaps = self.gaps(units, seen, &places);
        }
        let dealt = self.deal(units, seen, &places)?;
        let bags = match &self.plan.collect {
            Some(collect) => self.collect(collect, batch, units, seen, &dealt.labels),
            None => BTreeMap::new(),
        };
        let (shared, crowded) = self.shared(batch, units, seen, &places, &dealt);
        Ok(Findings { parts: dealt.parts, bags, shared, crowded })
    }

    /// The gaps of the pairs that the plan lists (spec 4.4).
    fn gaps(&self, units: &dyn Units<F>, seen: &Seen, places: &HashMap<ComponentId, u32>) -> PairGaps {
        let mut near: Vec<Vec<(u32, u32)>> = vec![Vec::new(); self.ids.len() + 1];
        for (pair, (a, b)) in (0..).zip(&self.plan.pairs) {
            if let (Some(&a), Some(&b)) = (places.get(a), places.get(b)) {
                near[a as usize].push((b, pair));
                near[b as usize].push((a, pair));
            }
        }
        let ranges: Vec<_> = blocks(seen.units.len(), BLOCK).collect();
        let sums = map(ranges.len(), |block| {
            let mut gaps: BTreeMap<u32, f64> = BTreeMap::new();
            for at in ranges[block].clone() {
                let own = at * seen.width..(at + 1) * seen.width;
                for a in own.clone().filter(|&a| seen.values[a] > 0.0) {
                    let near = &near[seen.components[a] as usize];
                    for b in (a + 1..own.end).filter(|_| !near.is_empty()) {
                        if let Some((_, pair)) = near.iter().find(|(other, _)| *other == seen.components[b]) {
                            let mass = units.mass(seen.units[at] as usize);
                            *gaps.entry(*pair).or_insert(0.0) += mass * pair_gap(seen.values[a], seen.values[b]);
                        }
                    }
                }
            }
            gaps
        });
        let mut gaps = vec![0.0; self.plan.pairs.len()];
        for (pair, gap) in sums.into_iter().flatten() {
            gaps[pair as usize] += gap;
        }
        PairGaps::Listed(self.plan.pairs.iter().copied().zip(gaps).collect())
    }

    /// Copies rows of every component that the plan names, and of every part.
    fn collect(
        &self,
        collect: &Collect,
        batch: usize,
        units: &dyn Units<F>,
        seen: &Seen,
        labels: &[ComponentId],
    ) -> BTreeMap<ComponentId, Bag> {
        let parts = self.plan.proposals.iter().flat_map(|proposal| &proposal.parts.ids);
        let mut rows: HashMap<ComponentId, Vec<(u64, u32)>> =
            collect.ids.iter().chain(parts).map(|&id| (id, Vec::new())).collect();
        for (at, (label, &value)) in labels.iter().zip(&seen.values).enumerate() {
            if value > collect.threshold
                && let Some(list) = rows.get_mut(label)
            {
                let unit = seen.units[at / seen.width];
                list.push((name(collect.name, [batch as u64, u64::from(unit)]), unit));
            }
        }
        let filled = rows.into_iter().filter(|(_, list)| !list.is_empty());
        filled
            .map(|(id, mut list)| {
                list.sort_unstable();
                list.truncate(collect.most);
                let (names, own): (Vec<_>, Vec<_>) = list.into_iter().unzip();
                let mut rows = Sample::default();
                units.copy_into(&own, &mut rows);
                (id, Bag { rows, names })
            })
            .collect()
    }

    /// Copies all rows of components that might be deleted, but for those of which there are too many.
    fn shared(
        &self,
        batch: usize,
        units: &dyn Units<F>,
        seen: &Seen,
        places: &HashMap<ComponentId, u32>,
        dealt: &Dealt,
    ) -> (SharedRows, BTreeSet<ComponentId>) {
        let (mut shared, mut crowded) = (SharedRows::default(), BTreeSet::new());
        if self.plan.shared.is_empty() {
            return (shared, crowded);
        }
        let mut n_rows = vec![0; self.ids.len() + 1];
        let carried = seen.components.iter().zip(&seen.values).filter(|(_, value)| **value > 0.0);
        carried.for_each(|(&component, _)| n_rows[component as usize] += 1);
        let mut wanted = vec![false; self.ids.len() + 1];
        for id in &self.plan.shared {
            let Some(&place) = places.get(id) else { continue };
            wanted[place as usize] = n_rows[place as usize] <= MOST_ROWS;
            if !wanted[place as usize] {
                crowded.insert(*id);
            }
        }
        let mut list = Vec::new();
        let pairs = seen.components.chunks_exact(seen.width.max(1)).zip(seen.values.chunks_exact(seen.width.max(1)));
        for ((at, &unit), (components, values)) in seen.units.iter().enumerate().zip(pairs) {
            if components.iter().zip(values).any(|(&component, &value)| value > 0.0 && wanted[component as usize]) {
                list.push(unit);
                let mut pairs = Vec::with_capacity(values.len());
                for (pair, &value) in (at * seen.width..).zip(values) {
                    match dealt.halves.get(&pair) {
                        Some(halves) => pairs.extend(halves),
                        None if value > 0.0 && dealt.labels[pair] != TAIL => pairs.push((dealt.labels[pair], value)),
                        None => {}
                    }
                }
                shared.pairs.push(pairs);
            }
        }
        units.copy_into(&list, &mut shared.rows);
        shared.batches = vec![batch as u32; list.len()];
        (shared, crowded)
    }
}
