//! What a visit does beside its local step on behalf of moves. It all hangs on the responsibilities of this very visit, which
//! is why sums over the batches of a pass are exact at its end.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::component::ComponentId;
use crate::data::{Sample, Units};
use crate::error::Result;
use crate::likelihood::Scorer;
use crate::local_step::{ByScore, Chunk, Keep, LocalStep, OfShares, Tap, pair_gap};
use crate::model::Model;
use crate::moves::delete::MOST_ROWS;
use crate::moves::plan::{Bag, Collect, Findings, Plan, SharedRows};
use crate::parallel::{Cancel, blocks, map, try_map};
use crate::rng::name;
use crate::simd::Scalar;
use crate::suffstats::{PairGaps, Summary};

/// Units whose pairs are looked at together.
const BLOCK: usize = 4096;
/// What stands for the tail among labels.
const TAIL: ComponentId = ComponentId(u32::MAX);

/// All responsibilities of a visit.
#[derive(Default)]
pub struct Seen {
    units: Vec<u32>,
    width: usize,
    components: Vec<u32>,
    values: Vec<f64>,
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
    scorers: Vec<Box<dyn Scorer<F>>>,
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
    /// Stops between blocks.
    pub cancel: &'a Cancel,
}

impl<F: Scalar> Look<'_, F> {
    /// What the plan looks for, in the visit of `batch`; gaps go into its summary.
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`]; [`crate::Error::Numerical`].
    pub fn at(&self, batch: usize, units: &Units<'_, F>, seen: &Seen, summary: &mut Summary) -> Result<Findings> {
        let places: HashMap<ComponentId, u32> = self.ids.iter().copied().zip(0..).collect();
        if !self.plan.pairs.is_empty() {
            summary.gaps = self.gaps(units, seen, &places);
        }
        let mut labels: Vec<ComponentId> = seen
            .components
            .iter()
            .map(|&component| self.ids.get(component as usize).copied().unwrap_or(TAIL))
            .collect();
        let parts = self.deal(units, seen, &places, &mut labels)?;
        let bags = match &self.plan.collect {
            Some(collect) => self.collect(collect, batch, units, seen, &labels),
            None => BTreeMap::new(),
        };
        let (shared, crowded) = self.shared(batch, units, seen, &places, &labels);
        Ok(Findings { parts, bags, shared, crowded })
    }

    /// The gaps of the pairs that the plan lists (spec 4.4).
    fn gaps(&self, units: &Units<'_, F>, seen: &Seen, places: &HashMap<ComponentId, u32>) -> PairGaps {
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

    /// Deals each target's whole share of a row to one of its parts (moves recipe, section 4), and says which in the labels.
    fn deal(
        &self,
        units: &Units<'_, F>,
        seen: &Seen,
        places: &HashMap<ComponentId, u32>,
        labels: &mut [ComponentId],
    ) -> Result<Vec<Summary>> {
        let proposals = &self.plan.proposals;
        let mut of_place = vec![usize::MAX; self.ids.len() + 1];
        for (at, proposal) in proposals.iter().enumerate() {
            if let Some(&place) = places.get(&proposal.target) {
                of_place[place as usize] = at;
            }
        }
        let mut lists: Vec<Vec<usize>> = vec![Vec::new(); proposals.len()];
        for (at, (&component, &value)) in seen.components.iter().zip(&seen.values).enumerate() {
            if let Some(list) = lists.get_mut(of_place[component as usize]).filter(|_| value > 0.0) {
                list.push(at);
            }
        }
        let dealt = try_map(proposals.len(), |at| {
            let rows: Vec<u32> = lists[at].iter().map(|&pair| seen.units[pair / seen.width]).collect();
            self.deal_one(
                at,
                &units.select(&rows),
                &lists[at].iter().map(|&pair| seen.values[pair]).collect::<Vec<_>>(),
            )
        })?;
        let mut parts = Vec::with_capacity(dealt.len());
        for ((summary, best), (list, proposal)) in dealt.into_iter().zip(lists.iter().zip(proposals)) {
            for (&pair, part) in list.iter().zip(best) {
                labels[pair] = proposal.parts.ids[part as usize];
            }
            parts.push(summary);
        }
        Ok(parts)
    }

    fn deal_one(&self, at: usize, units: &Units<'_, F>, shares: &[f64]) -> Result<(Summary, Vec<u32>)> {
        let scorer = self.packed.scorers[at].as_ref();
        let deal = ByScore { scorer, tail: None, width: 1, margin: None, abandon: true, row_terms: false };
        let step = LocalStep {
            likelihood: self.model.likelihood.as_ref(),
            ids: &self.plan.proposals[at].parts.ids,
            assign: &OfShares { deal, shares },
            keep: Keep::Summary,
            cancel: self.cancel,
        };
        let mut best = Best::default();
        let outcome = step.run(units, None, &mut [&mut best])?;
        Ok((outcome.summary, best.0))
    }

    /// Copies rows of every component that the plan names, and of every part.
    fn collect(
        &self,
        collect: &Collect,
        batch: usize,
        units: &Units<'_, F>,
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
                rows.extend(units, &own);
                (id, Bag { rows, names })
            })
            .collect()
    }

    /// Copies all rows of components that might be deleted, but for those of which there are too many.
    fn shared(
        &self,
        batch: usize,
        units: &Units<'_, F>,
        seen: &Seen,
        places: &HashMap<ComponentId, u32>,
        labels: &[ComponentId],
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
                let own = labels[at * seen.width..].iter().zip(values);
                let carried = own.filter(|(label, value)| **value > 0.0 && **label != TAIL);
                shared.pairs.push(carried.map(|(&label, &value)| (label, value)).collect());
            }
        }
        shared.rows.extend(units, &list);
        shared.batches = vec![batch as u32; list.len()];
        (shared, crowded)
    }
}

/// The best component of every unit.
#[derive(Default)]
pub(super) struct Best(pub Vec<u32>);

impl Tap for Best {
    fn observe(&mut self, chunk: &Chunk<'_>) -> Result<()> {
        self.0.extend((0..chunk.responsibilities.len()).map(|unit| chunk.responsibilities.best(unit)));
        Ok(())
    }
}
