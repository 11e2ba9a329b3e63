//! What the rows of a visit give to the parts of every target: each its responsibility for the target, to one part or
//! to two.
//!
//! Each row splits its responsibilities, the largest first, as far as it has free slots. A row with more components
//! than a later visit keeps would make that visit lower the bound. With at most two parts a row, the entropy of any
//! group of parts is the sum of theirs less the gaps of the pairs inside it. So whatever becomes of the parts is judged
//! exactly from sums.

use std::collections::HashMap;

use crate::component::ComponentId;
use crate::error::Result;
use crate::local_step::{ByScore, Keep, LocalStep, OfShares};
use crate::moves::look::TAIL;
use crate::moves::{Look, Seen};
use crate::parallel::try_map;
use crate::responsibilities::Sparsity;
use crate::scoring::Scorer;
use crate::simd::Scalar;
use crate::suffstats::Summary;

/// Drop parts whose log weight is more than this many nats below the row's best.
pub(super) const MARGIN: f64 = 20.0;

/// Maximum number of parts that share a row's responsibility for a target: two, or one where rows keep one component
/// only.
pub(super) fn most_parts(sparsity: Sparsity) -> usize {
    sparsity.clamp(2)
}

/// What the parts of all proposals have of a visit.
pub(super) struct Dealt {
    /// By proposal.
    pub parts: Vec<Summary>,
    /// By pair of the visit its component, or the part that has most of it.
    pub labels: Vec<ComponentId>,
    /// By pair that two parts share: the responsibility of each. Only where moves look for something of their own.
    pub halves: HashMap<usize, [(ComponentId, f64); 2]>,
}

/// Pairs of a visit that are dealt to the parts of one proposal: those of rows without a free slot, and those with one.
type PairLists = [Vec<usize>; 2];

/// Deals each target's responsibilities to its parts (mathematics 4.6.2).
pub(super) fn deal<F: Scalar>(
    look: &Look<'_, F>,
    scorers: &[Box<dyn Scorer<F>>],
    places: &HashMap<ComponentId, u32>,
) -> Result<Dealt> {
    let proposals = &look.plan.proposals;
    let lists = lists(look, places);
    let dealt = try_map(proposals.len(), |at| {
        let [hard, soft] = &lists[at];
        let (mut summary, one) = deal_one(look, scorers, at, hard, 1)?;
        let (divided, two) = deal_one(look, scorers, at, soft, most_parts(look.sparsity))?;
        summary.add(&divided)?;
        Ok((summary, [one, two]))
    })?;

    let label = |&component: &u32| look.ids.get(component as usize).copied().unwrap_or(TAIL);
    let mut labels: Vec<ComponentId> = look.seen.components.iter().map(label).collect();
    let (mut parts, mut halves) = (Vec::with_capacity(dealt.len()), HashMap::new());
    for ((summary, seen), (lists, proposal)) in dealt.into_iter().zip(lists.iter().zip(proposals)) {
        for (list, seen) in lists.iter().zip(seen) {
            let own = seen.components.chunks(seen.width.max(1)).zip(seen.values.chunks(seen.width.max(1)));
            for (&pair, (components, values)) in list.iter().zip(own) {
                let id = |slot: usize| proposal.parts.ids[components[slot] as usize];
                let best = usize::from(values.len() > 1 && values[1] > values[0]);
                labels[pair] = id(best);
                if !look.plan.wanted.is_empty() && values.len() > 1 && values[1 - best] > 0.0 {
                    halves.insert(pair, [0, 1].map(|slot| (id(slot), values[slot])));
                }
            }
        }
        parts.push(summary);
    }
    Ok(Dealt { parts, labels, halves })
}

/// By proposal, the pairs of its target.
fn lists<F: Scalar>(look: &Look<'_, F>, places: &HashMap<ComponentId, u32>) -> Vec<PairLists> {
    let (seen, proposals) = (look.seen, &look.plan.proposals);
    let mut of_place = vec![usize::MAX; look.ids.len() + 1];
    for (at, proposal) in proposals.iter().enumerate() {
        if let Some(&place) = places.get(&proposal.target) {
            of_place[place as usize] = at;
        }
    }
    let mut lists: Vec<PairLists> = vec![Default::default(); proposals.len()];
    let most = look.sparsity.clamp(usize::MAX);
    let width = seen.width.max(1);
    let mut targets = Vec::new();
    for (row, (components, values)) in seen.components.chunks(width).zip(seen.values.chunks(width)).enumerate() {
        let own = components.iter().zip(values).enumerate().filter(|(_, (_, value))| **value > 0.0);
        targets.clear();
        targets.extend(own.map(|(slot, (&component, _))| (slot, of_place[component as usize])));
        let room = most.saturating_sub(targets.len());
        targets.retain(|&(_, at)| at < proposals.len());
        // Free slots are for the largest responsibilities.
        targets.sort_by(|a, b| values[b.0].total_cmp(&values[a.0]).then(a.1.cmp(&b.1)));
        for (rank, &(slot, at)) in targets.iter().enumerate() {
            lists[at][usize::from(rank < room)].push(row * width + slot);
        }
    }
    lists
}

/// What the parts of the proposal at `at` have of the listed pairs, each pair dealt to `width` parts.
fn deal_one<F: Scalar>(
    look: &Look<'_, F>,
    scorers: &[Box<dyn Scorer<F>>],
    at: usize,
    list: &[usize],
    width: usize,
) -> Result<(Summary, Seen)> {
    let seen = look.seen;
    let rows: Vec<u32> = list.iter().map(|&pair| seen.units[pair / seen.width]).collect();
    let shares: Vec<f64> = list.iter().map(|&pair| seen.values[pair]).collect();
    let scorer = scorers[at].as_ref();
    let width = width.min(scorer.n_components());
    let deal = ByScore { scorer, tail: None, width, margin: Some(MARGIN), abandon: true, row_terms: false };
    let step = LocalStep {
        likelihood: look.model.likelihood.as_ref(),
        ids: &look.plan.proposals[at].parts.ids,
        assign: &OfShares { deal, shares: &shares },
        keep: Keep::SummaryAndGaps,
        cancel: look.cancel,
    };
    let mut dealt = Seen::default();
    let outcome = step.run(look.units.select(&rows).as_ref(), None, &mut [&mut dealt])?;
    Ok((outcome.summary, dealt))
}
