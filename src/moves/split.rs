//! Splits that were dealt in the visits of a pass, judged and carried out (moves recipe, section 4).
//!
//! Each row gave its whole share of the target to one part, so the entropies of the parts add up to that of the target, all
//! gaps between parts are zero, and the change of the bound follows from sums:
//! `sum_j cum(S_j) - cum(S_k) + L*(N') - L*(N)` with `cum(S) = c(lambda_0 + S) - c(lambda_0)`.

use std::collections::BTreeMap;

use crate::component::{ComponentId, Edit, EditLog, position};
use crate::error::Result;
use crate::memo::Memo;
use crate::moves::judge::{Judge, Part, choices, is_gain};
use crate::moves::plan::Proposal;
use crate::parallel::try_map;
use crate::simd::Scalar;
use crate::suffstats::Summary;

/// A way to group the parts of a target.
struct Level {
    /// Positions of the parts of each group; the largest group is the first.
    groups: Vec<Vec<usize>>,
    counts: Vec<f64>,
    /// The change of the bound but for the weights, nats.
    gain: f64,
    /// The largest term of it.
    largest: f64,
}

/// A proposal whose parts all batches have been dealt to.
struct Candidate<'a> {
    at: usize,
    proposal: &'a Proposal,
    levels: Vec<Level>,
}

/// What became of the proposals of a pass.
pub(super) struct Settled {
    /// By proposal, the gain of those that were accepted, nats.
    pub gains: Vec<Option<f64>>,
    /// By proposal, whether it would have been a gain by itself.
    pub is_worth: Vec<bool>,
    /// The component that each part now belongs to.
    pub owner: BTreeMap<ComponentId, ComponentId>,
}

/// Judges every proposal by itself and carries out those that raise the bound, the best first: of each the grouping of its
/// parts that gains most. `parts` has, by batch and by proposal, what was dealt. At most `most` are carried out.
pub(super) fn settle<F: Scalar>(
    judge: &Judge<'_, F>,
    memo: &mut Memo,
    edits: &mut EditLog,
    proposals: &[Proposal],
    parts: &[Vec<Summary>],
    most: usize,
) -> Result<Settled> {
    let total = memo.total();
    let mut settled =
        Settled { gains: vec![None; proposals.len()], is_worth: vec![false; proposals.len()], owner: BTreeMap::new() };
    let candidates = try_map(proposals.len(), |at| {
        let proposal = &proposals[at];
        let mut sum = Summary::empty(proposal.parts.ids.clone(), total.n_statistics, false);
        for batch in parts {
            sum.add(&batch[at])?;
        }
        let target = position(&total.ids, proposal.target)?;
        Ok(Candidate { at, proposal, levels: levels(judge, &Part::of(total, target), &sum)? })
    })?;
    let tail = total.tail.map_or(0.0, |tail| tail.count);
    let mut counts = total.counts.clone();
    let mut places: BTreeMap<ComponentId, usize> = total.ids.iter().copied().zip(0..).collect();
    let mut before = judge.allocation(counts.clone(), tail);
    let mut left: Vec<(f64, Candidate<'_>)> = Vec::new();
    for candidate in candidates {
        let place = places[&candidate.proposal.target];
        if let Some((_, gain)) = best(judge, &candidate.levels, &counts, place, before, tail) {
            settled.is_worth[candidate.at] = true;
            left.push((gain, candidate));
        }
    }
    left.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.at.cmp(&b.1.at)));
    let mut new = Vec::new();
    let mut accepted = Vec::new();
    for (_, candidate) in left.into_iter().take(most) {
        // What was accepted before it has changed the weights.
        let place = places[&candidate.proposal.target];
        let Some((level, gain)) = best(judge, &candidate.levels, &counts, place, before, tail) else { continue };
        let level = &candidate.levels[level];
        counts[place] = level.counts[0];
        counts.extend_from_slice(&level.counts[1..]);
        before = judge.allocation(counts.clone(), tail);
        let ids = owners(&candidate, level, &mut settled.owner);
        for &id in &ids[1..] {
            places.insert(id, places.len());
            new.push(id);
        }
        settled.gains[candidate.at] = Some(gain);
        accepted.push((candidate.at, ids, level.groups.clone()));
    }
    for (at, proposal) in proposals.iter().enumerate() {
        if settled.gains[at].is_none() {
            settled.owner.extend(proposal.parts.ids.iter().map(|&part| (part, proposal.target)));
        }
    }
    if !new.is_empty() {
        let edit = Edit::Append { ids: new };
        memo.apply(&edit)?;
        edits.push(edit);
        let dealt: Vec<Summary> = parts.iter().map(|batch| grouped(batch, &accepted)).collect();
        memo.put(&dealt)?;
    }
    Ok(settled)
}

/// The components of the groups of a level: the first keeps the target's identity, each other one has that of a part of it.
fn owners(
    candidate: &Candidate<'_>,
    level: &Level,
    owner: &mut BTreeMap<ComponentId, ComponentId>,
) -> Vec<ComponentId> {
    let parts = &candidate.proposal.parts.ids;
    let mut ids = Vec::with_capacity(level.groups.len());
    for (at, group) in level.groups.iter().enumerate() {
        let id = if at == 0 { candidate.proposal.target } else { parts[group[0]] };
        owner.extend(group.iter().map(|&part| (parts[part], id)));
        ids.push(id);
    }
    // Parts that nothing was dealt to.
    for &part in parts {
        owner.entry(part).or_insert(candidate.proposal.target);
    }
    ids
}

/// A proposal, the components that its groups become, and the parts of each group.
type Accepted = (usize, Vec<ComponentId>, Vec<Vec<usize>>);

/// What the groups of the accepted proposals have of one batch.
fn grouped(batch: &[Summary], accepted: &[Accepted]) -> Summary {
    let ids = accepted.iter().flat_map(|(_, ids, _)| ids.iter().copied()).collect();
    let mut dealt = Summary::empty(ids, batch.first().map_or(0, |parts| parts.n_statistics), false);
    let groups = accepted.iter().flat_map(|(at, _, groups)| groups.iter().map(|group| (*at, group)));
    for (k, (at, group)) in groups.enumerate() {
        for &part in group {
            dealt.add_component(k, &batch[at], part);
        }
    }
    dealt
}

/// How the parts of the component at `place` are best grouped, where two groups or more are better than one; `parts` is what
/// was dealt to them, of all rows or of a subsample that stands for them.
pub(super) fn grouping<F: Scalar>(
    judge: &Judge<'_, F>,
    total: &Summary,
    place: usize,
    parts: &Summary,
) -> Result<Option<Vec<Vec<usize>>>> {
    let mut whole = Part { count: 0.0, statistics: vec![0.0; parts.n_statistics] };
    for k in 0..parts.n_components() {
        whole = whole.with(&Part::of(parts, k));
    }
    let mut levels = levels(judge, &whole, parts)?;
    let tail = total.tail.map_or(0.0, |tail| tail.count);
    let before = judge.allocation(total.counts.clone(), tail);
    let best = best(judge, &levels, &total.counts, place, before, tail);
    Ok(best.map(|(level, _)| levels.swap_remove(level).groups))
}

/// The level that gains most, and its gain, if it is one.
fn best<F: Scalar>(
    judge: &Judge<'_, F>,
    levels: &[Level],
    counts: &[f64],
    place: usize,
    before: f64,
    tail: f64,
) -> Option<(usize, f64)> {
    let mut best: Option<(usize, f64)> = None;
    for (at, level) in levels.iter().enumerate() {
        let mut counts = counts.to_vec();
        counts[place] = level.counts[0];
        counts.extend_from_slice(&level.counts[1..]);
        let after = judge.allocation(counts, tail);
        let gain = level.gain + after - before;
        if is_gain(gain, [level.largest, before]) && best.is_none_or(|(_, other)| gain > other) {
            best = Some((at, gain));
        }
    }
    best
}

/// All parts that something was dealt to, and then, joining the pair that raises the bound most or lowers it least again and
/// again, fewer and fewer groups, down to two.
fn levels<F: Scalar>(judge: &Judge<'_, F>, target: &Part, parts: &Summary) -> Result<Vec<Level>> {
    let whole = judge.gain(target.sufficient())?;
    let mut groups: Vec<(Vec<usize>, Part, f64)> = Vec::new();
    for k in (0..parts.n_components()).filter(|&k| parts.counts[k] > 0.0) {
        let part = Part::of(parts, k);
        let gain = judge.gain(part.sufficient())?;
        groups.push((vec![k], part, gain));
    }
    // By pair of groups (the second is the later one), the gain of both together.
    let mut joint: BTreeMap<(usize, usize), f64> = BTreeMap::new();
    let mut alive: Vec<usize> = (0..groups.len()).collect();
    let mut levels = Vec::new();
    while alive.len() > 1 {
        let mut own: Vec<usize> = alive.clone();
        own.sort_by(|&a, &b| groups[b].1.count.total_cmp(&groups[a].1.count).then(a.cmp(&b)));
        levels.push(Level {
            groups: own.iter().map(|&group| groups[group].0.clone()).collect(),
            counts: own.iter().map(|&group| groups[group].1.count).collect(),
            gain: own.iter().map(|&group| groups[group].2).sum::<f64>() - whole,
            largest: own.iter().fold(whole.abs(), |largest, &group| largest.max(groups[group].2.abs())),
        });
        let mut best = (f64::NEG_INFINITY, 0, 0);
        for (at, &a) in alive.iter().enumerate() {
            for &b in &alive[at + 1..] {
                let both = match joint.get(&(a, b)) {
                    Some(&both) => both,
                    None => judge.gain(groups[a].1.with(&groups[b].1).sufficient())?,
                };
                joint.insert((a, b), both);
                // Without the weights a large part, which each cut makes much tighter, would be joined last.
                let weights = choices(groups[a].1.count, groups[b].1.count);
                let change = both - groups[a].2 - groups[b].2 + weights;
                if change > best.0 {
                    best = (change, a, b);
                }
            }
        }
        let (_, a, b) = best;
        if a == b {
            break;
        }
        let joined = [groups[a].0.clone(), groups[b].0.clone()].concat();
        groups.push((joined, groups[a].1.with(&groups[b].1), joint[&(a, b)]));
        alive.retain(|&group| group != a && group != b);
        alive.push(groups.len() - 1);
    }
    Ok(levels)
}
