//! What the rows of a visit give to the parts of every target: each its share of the target, to one part or to two.
//!
//! A row divides its shares, the largest first, as far as there is room: a row that kept more components than a later visit
//! keeps would make that visit lower the bound. With two parts a row at most, the entropy of any group of parts is the sum of theirs less the gaps of the
//! pairs inside it, so whatever becomes of the parts is judged exactly from sums.

use std::collections::HashMap;

use crate::component::ComponentId;
use crate::error::Result;
use crate::local_step::{ByScore, Keep, LocalStep, OfShares, Units};
use crate::moves::look::{Look, Seen, TAIL};
use crate::parallel::try_map;
use crate::responsibilities::Sparsity;
use crate::simd::Scalar;
use crate::suffstats::Summary;

/// Nats below the best from which on a part gets nothing of a row.
pub(super) const MARGIN: f64 = 20.0;

/// Parts that a row can divide its share of a component between: two, or one where rows keep one component only.
pub(super) fn most_parts(sparsity: Sparsity) -> usize {
    sparsity.clamp(2)
}

/// What the parts of all proposals have of a visit.
pub(super) struct Dealt {
    /// By proposal.
    pub parts: Vec<Summary>,
    /// By pair of the visit its component, or the part that has most of it.
    pub labels: Vec<ComponentId>,
    /// By pair that two parts have: what each of them has. Only where rows are copied with all their responsibilities.
    pub halves: HashMap<usize, [(ComponentId, f64); 2]>,
}

impl<F: Scalar> Look<'_, F> {
    /// Deals each target's whole share of a row to its parts (moves recipe, section 4).
    pub(super) fn deal(&self, units: &dyn Units<F>, seen: &Seen, places: &HashMap<ComponentId, u32>) -> Result<Dealt> {
        let proposals = &self.plan.proposals;
        let mut of_place = vec![usize::MAX; self.ids.len() + 1];
        for (at, proposal) in proposals.iter().enumerate() {
            if let Some(&place) = places.get(&proposal.target) {
                of_place[place as usize] = at;
            }
        }
        // By proposal, the pairs of rows without and with room.
        let mut lists: Vec<[Vec<usize>; 2]> = vec![Default::default(); proposals.len()];
        let most = self.sparsity.clamp(usize::MAX);
        let width = seen.width.max(1);
        let mut targets = Vec::new();
        for (row, (components, values)) in seen.components.chunks(width).zip(seen.values.chunks(width)).enumerate() {
            let own = || components.iter().zip(values).enumerate().filter(|(_, (_, value))| **value > 0.0);
            targets.clear();
            targets.extend(own().map(|(slot, (&component, _))| (slot, of_place[component as usize])));
            let room = most.saturating_sub(targets.len());
            targets.retain(|&(_, at)| at < proposals.len());
            // What room there is, is for the largest shares.
            targets.sort_by(|a, b| values[b.0].total_cmp(&values[a.0]).then(a.1.cmp(&b.1)));
            for (rank, &(slot, at)) in targets.iter().enumerate() {
                lists[at][usize::from(rank < room)].push(row * width + slot);
            }
        }
        let dealt = try_map(proposals.len(), |at| {
            let [hard, soft] = &lists[at];
            let (mut summary, one) = self.deal_one(at, units, seen, hard, 1)?;
            let (divided, two) = self.deal_one(at, units, seen, soft, most_parts(self.sparsity))?;
            summary.add(&divided)?;
            Ok((summary, [one, two]))
        })?;

        let label = |&component: &u32| self.ids.get(component as usize).copied().unwrap_or(TAIL);
        let mut labels: Vec<ComponentId> = seen.components.iter().map(label).collect();
        let (mut parts, mut halves) = (Vec::with_capacity(dealt.len()), HashMap::new());
        for ((summary, shares), (lists, proposal)) in dealt.into_iter().zip(lists.iter().zip(proposals)) {
            for (list, shares) in lists.iter().zip(shares) {
                let own = shares.components.chunks(shares.width.max(1)).zip(shares.values.chunks(shares.width.max(1)));
                for (&pair, (components, values)) in list.iter().zip(own) {
                    let id = |slot: usize| proposal.parts.ids[components[slot] as usize];
                    let best = usize::from(values.len() > 1 && values[1] > values[0]);
                    labels[pair] = id(best);
                    if !self.plan.shared.is_empty() && values.len() > 1 && values[1 - best] > 0.0 {
                        halves.insert(pair, [0, 1].map(|slot| (id(slot), values[slot])));
                    }
                }
            }
            parts.push(summary);
        }
        Ok(Dealt { parts, labels, halves })
    }

    /// What the parts of the proposal at `at` have of the listed pairs, each pair dealt to `width` parts.
    fn deal_one(
        &self,
        at: usize,
        units: &dyn Units<F>,
        seen: &Seen,
        list: &[usize],
        width: usize,
    ) -> Result<(Summary, Seen)> {
        let rows: Vec<u32> = list.iter().map(|&pair| seen.units[pair / seen.width]).collect();
        let shares: Vec<f64> = list.iter().map(|&pair| seen.values[pair]).collect();
        let scorer = self.packed.scorers[at].as_ref();
        let width = width.min(scorer.n_components());
        let deal = ByScore { scorer, tail: None, width, margin: Some(MARGIN), abandon: true, row_terms: false };
        let step = LocalStep {
            likelihood: self.model.likelihood.as_ref(),
            ids: &self.plan.proposals[at].parts.ids,
            assign: &OfShares { deal, shares: &shares },
            keep: Keep::SummaryAndGaps,
            cancel: self.cancel,
        };
        let mut dealt = Seen::default();
        let outcome = step.run(units.select(&rows).as_ref(), None, &mut [&mut dealt])?;
        Ok((outcome.summary, dealt))
    }
}
