//! Splits the responsibilities of the rows of a visit between the parts of every target. Each row is split between at
//! most two parts.
//!
//! Each row splits its responsibilities, the largest first, as far as it has free slots. If a row had more components
//! than the next visit keeps, that visit would lower the bound. With at most two parts per row, the entropy of any
//! group of parts is the sum of the parts' entropies minus the gaps of the pairs inside it. So every grouping of the
//! parts can be judged exactly from sums.

use std::collections::HashMap;

use crate::component::ComponentId;
use crate::error::Result;
use crate::local_step::{ByScore, Keep, LocalStep, OfShares};
use crate::moves::row_pairs::RowPairs;
use crate::moves::seen::Grouped;
use crate::moves::{Look, Plan};
use crate::parallel::{map, try_map};
use crate::responsibilities::Sparsity;
use crate::scoring::Scorer;
use crate::simd::Scalar;
use crate::suffstats::Summary;

/// Drop parts whose log weight is more than this many nats below the row's best.
pub(super) const MARGIN: f64 = 20.0;

/// Maximum number of parts that share a row's responsibility for a target: two, or one if rows keep only one component.
pub(super) fn most_parts(sparsity: Sparsity) -> usize {
    sparsity.clamp(2)
}

/// Summaries of a visit for the parts of all proposals.
pub(super) struct Dealt {
    /// One summary of the parts per proposal.
    pub parts: Vec<Summary>,
    /// For each proposal, the units of its target: first those without a free slot, then those with one.
    pub lists: Vec<[List; 2]>,
    /// For each component position, the proposal of which it is the target.
    targets: Vec<Option<usize>>,
}

/// Units whose responsibilities for a target are split between its parts.
#[derive(Default)]
pub(super) struct List {
    /// Indices of the units, ascending.
    pub units: Vec<u32>,
    /// Their responsibilities for the target.
    pub shares: Vec<f64>,
    dealt: RowPairs,
}

impl Dealt {
    /// The proposal of which a component is the target.
    pub fn target(&self, component: u32) -> Option<usize> {
        self.targets.get(component as usize).copied().flatten()
    }

    /// Responsibilities of a unit for the parts of a proposal.
    pub fn pairs(&self, plan: &Plan, proposal: usize, unit: u32) -> impl Iterator<Item = (ComponentId, f64)> {
        let ids = &plan.proposals[proposal].parts.ids;
        let places = self.lists[proposal].iter().find_map(|list| Some((list, list.units.binary_search(&unit).ok()?)));
        places.into_iter().flat_map(|(list, index)| list.pairs(index, ids))
    }
}

impl List {
    /// The part with the largest responsibility for a unit of the list.
    pub fn best(&self, index: usize, parts: &[ComponentId]) -> ComponentId {
        let (components, values) = self.dealt.row(index);
        parts[components[usize::from(values.len() > 1 && values[1] > values[0])] as usize]
    }

    /// The parts' responsibilities for a unit of the list. If only one part is positive, it has the unit's whole
    /// responsibility for the target.
    fn pairs(&self, index: usize, parts: &[ComponentId]) -> impl Iterator<Item = (ComponentId, f64)> {
        let (components, values) = self.dealt.row(index);
        let is_one = values.iter().filter(|value| **value > 0.0).count() < 2;
        let pairs = components.iter().zip(values).filter(|(_, value)| **value > 0.0);
        pairs.map(move |(&k, &value)| (parts[k as usize], if is_one { self.shares[index] } else { value }))
    }
}

/// A visit after the responsibilities for targets have been split between their parts.
pub struct Visited<'a, F: Scalar> {
    /// The visit.
    pub look: &'a Look<'a, F>,
    /// Positions of the components.
    pub places: HashMap<ComponentId, u32>,
    pub(super) dealt: Dealt,
}

impl<F: Scalar> Visited<'_, F> {
    /// The responsibilities of a unit, with targets replaced by their parts. The tail is left out.
    pub fn responsibilities(&self, unit: usize) -> Vec<(ComponentId, f64)> {
        let mut pairs = Vec::new();
        for (component, value) in self.look.seen.pairs(unit) {
            let Some(&id) = self.look.ids.get(component as usize) else { continue };
            match self.dealt.target(component) {
                Some(proposal) => pairs.extend(self.dealt.pairs(self.look.plan, proposal, unit as u32)),
                None => pairs.push((id, value)),
            }
        }
        pairs
    }
}

/// Splits each target's responsibilities between its parts (mathematics 4.6.2).
pub(super) fn deal<F: Scalar>(
    look: &Look<'_, F>,
    scorers: &[Box<dyn Scorer<F>>],
    places: &HashMap<ComponentId, u32>,
) -> Result<Dealt> {
    let proposals = &look.plan.proposals;
    let mut targets = vec![None; look.ids.len() + 1];
    for (index, proposal) in proposals.iter().enumerate() {
        if let Some(&place) = places.get(&proposal.target) {
            targets[place as usize] = Some(index);
        }
    }
    let blocks = list(look, &targets);
    let width = most_parts(look.sparsity);
    let mut dealt = try_map(2 * proposals.len(), |number| {
        let (units, shares) = blocks.iter().flat_map(|block| block.of(number)).copied().unzip();
        let (proposal, width) = (number / 2, if number % 2 == 0 { 1 } else { width });
        deal_one(look, scorers[proposal].as_ref(), proposal, List { units, shares, ..List::default() }, width)
    })?
    .into_iter();
    let (mut parts, mut lists) = (Vec::new(), Vec::new());
    while let (Some((mut summary, hard)), Some((divided, soft))) = (dealt.next(), dealt.next()) {
        summary.add(&divided)?;
        parts.push(summary);
        lists.push([hard, soft]);
    }
    Ok(Dealt { parts, lists, targets })
}

/// By block and by list (two per proposal), units and their responsibilities for the target. The first list has the
/// units without a free slot, the second those with one.
fn list<F: Scalar>(look: &Look<'_, F>, targets: &[Option<usize>]) -> Vec<Grouped<(u32, f64)>> {
    let n_proposals = look.plan.proposals.len();
    let blocks = if n_proposals == 0 { &[] } else { look.seen.blocks() };
    let most = look.sparsity.clamp(usize::MAX);
    map(blocks.len(), |index| {
        let (mut entries, mut of_targets) = (Vec::new(), Vec::new());
        for (unit, components, values) in blocks[index].units() {
            let all = components.iter().zip(values);
            of_targets.clear();
            of_targets.extend(all.filter_map(|(&component, &value)| Some((targets[component as usize]?, value))));
            let room = most.saturating_sub(values.len());
            // Free slots go to the largest responsibilities.
            if of_targets.len() > room {
                of_targets.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            }
            let ranked = of_targets.iter().enumerate();
            entries.extend(
                ranked
                    .map(|(rank, &(proposal, value))| (2 * proposal + usize::from(rank < room), (unit as u32, value))),
            );
        }
        Grouped::new(&entries, 2 * n_proposals)
    })
}

/// Summarises the parts of a proposal over the listed units, each split between at most `width` parts.
fn deal_one<F: Scalar>(
    look: &Look<'_, F>,
    scorer: &dyn Scorer<F>,
    proposal: usize,
    list: List,
    width: usize,
) -> Result<(Summary, List)> {
    let width = width.min(scorer.n_components());
    let deal =
        ByScore { scorer, has_tail: false, width, margin: Some(MARGIN), abandon: true, row_terms: false, mask: None };
    let step = LocalStep {
        likelihood: look.model.likelihood.as_ref(),
        ids: &look.plan.proposals[proposal].parts.ids,
        assign: &OfShares { deal, shares: &list.shares },
        keep: Keep::SummaryAndGaps,
        cancel: look.cancel,
    };
    let mut dealt = RowPairs::default();
    let outcome = step.run_compact(look.units.select(&list.units).as_ref(), None, &mut [&mut dealt])?;
    Ok((outcome.summary, List { dealt, ..list }))
}
