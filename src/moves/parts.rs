//! Parts to which rows were dealt in the visits of a pass, judged and carried out (mathematics 4.6.2).
//!
//! Each row gave its responsibility for the target to one part or to two. The entropy of a group of parts then is the
//! sum of theirs less the merge-entropy gaps of the pairs inside it, and that of the target the same with all pairs; so
//! the change of the bound by groups g follows from sums: `sum_g cum(S_g) - cum(S_k) + sum_{g < h} G_gh + L*(N') -
//! L*(N)` with `cum(S) = c(lambda_0 + S) - c(lambda_0)`, where the gap of two groups is the sum of those of their
//! parts. Nothing cancels in it: a gap is never below zero.

use std::collections::BTreeMap;

use crate::component::{ComponentId, Edit, EditLog, position};
use crate::error::{Error, Result};
use crate::memo::Memo;
use crate::moves::judge::choices;
use crate::moves::{Judge, Part, Proposal, is_gain};
use crate::parallel::try_map;
use crate::simd::Scalar;
use crate::suffstats::Summary;

/// A way to group the parts of a target.
struct Level {
    /// Positions of the parts of each group; the largest group is the first.
    groups: Vec<Vec<usize>>,
    counts: Vec<f64>,
    /// The change of the bound without that of the weights, nats.
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

/// The outcome for the proposals of a pass.
pub(super) struct Settled {
    /// By proposal, the gain of those that were accepted, nats.
    pub gains: Vec<Option<f64>>,
    /// By proposal, whether it would have been a gain by itself.
    pub is_worth: Vec<bool>,
    /// The component that each part now belongs to.
    pub owner: BTreeMap<ComponentId, ComponentId>,
}

/// Judges every proposal by itself and carries out those that raise the bound, the best first: of each the grouping of
/// its parts that gains most. `parts` has, by batch and by proposal, what was dealt. At most `most` are carried out.
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
        let mut sum = Summary::empty(proposal.parts.ids.clone(), total.n_statistics, true);
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
        let dealt: Vec<Summary> = parts.iter().map(|batch| grouped(batch, &accepted)).collect::<Result<_>>()?;
        memo.put(&dealt)?;
    }
    Ok(settled)
}

/// The components of the groups of a level: the first keeps the target's identity, each other one has that of a part of
/// it.
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
fn grouped(batch: &[Summary], accepted: &[Accepted]) -> Result<Summary> {
    let ids = accepted.iter().flat_map(|(_, ids, _)| ids.iter().copied()).collect();
    let mut dealt = Summary::empty(ids, batch.first().map_or(0, |parts| parts.n_statistics), false);
    let groups = accepted.iter().flat_map(|(at, _, groups)| groups.iter().map(|group| (*at, group)));
    for (k, (at, group)) in groups.enumerate() {
        for (slot, &part) in group.iter().enumerate() {
            dealt.add_component(k, &batch[at], part);
            for &other in &group[..slot] {
                dealt.entropies[k] -= gap(&batch[at], other, part)?;
            }
        }
    }
    Ok(dealt)
}

/// The gap of two parts, which is summed up while rows are dealt to them.
fn gap(parts: &Summary, a: usize, b: usize) -> Result<f64> {
    let (a, b) = (parts.ids[a], parts.ids[b]);
    parts.gaps.get(a, b).ok_or_else(|| Error::invalid("parts", format!("{a:?} and {b:?}"), "parts whose gap is known"))
}

/// How the parts of the component at `place` are best grouped, where two groups or more are better than one; `parts` is
/// what was dealt to them, of all rows or of a subsample that stands for them.
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
    // Rows of which other components have a part are among them whole, so they may weigh more than the component does.
    let mut counts = total.counts.clone();
    counts[place] = whole.count;
    let before = judge.allocation(counts.clone(), tail);
    let best = best(judge, &levels, &counts, place, before, tail);
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

/// Some parts of a target.
struct Group {
    parts: Vec<usize>,
    part: Part,
    /// What it adds to the bound, without weights and entropies.
    gain: f64,
}

/// Two groups.
#[derive(Clone, Copy)]
struct Pair {
    /// The gain of both together.
    both: f64,
    /// Their gap.
    gap: f64,
}

/// All parts that something was dealt to, and then, joining the pair that raises the bound most or lowers it least
/// again and again, fewer and fewer groups, down to two.
fn levels<F: Scalar>(judge: &Judge<'_, F>, target: &Part, parts: &Summary) -> Result<Vec<Level>> {
    let whole = judge.gain(target.sufficient())?;
    let mut groups: Vec<Group> = Vec::new();
    for k in (0..parts.n_components()).filter(|&k| parts.counts[k] > 0.0) {
        let part = Part::of(parts, k);
        let gain = judge.gain(part.sufficient())?;
        groups.push(Group { parts: vec![k], part, gain });
    }
    // The second is the later one.
    let mut pairs: BTreeMap<(usize, usize), Pair> = BTreeMap::new();
    let mut alive: Vec<usize> = (0..groups.len()).collect();
    for (at, &a) in alive.iter().enumerate() {
        for &b in &alive[at + 1..] {
            let both = judge.gain(groups[a].part.with(&groups[b].part).sufficient())?;
            let gap = gap(parts, groups[a].parts[0], groups[b].parts[0])?;
            pairs.insert((a, b), Pair { both, gap });
        }
    }
    let mut levels = Vec::new();
    while alive.len() > 1 {
        let mut own: Vec<usize> = alive.clone();
        own.sort_by(|&a, &b| groups[b].part.count.total_cmp(&groups[a].part.count).then(a.cmp(&b)));
        levels.push(Level {
            groups: own.iter().map(|&group| groups[group].parts.clone()).collect(),
            counts: own.iter().map(|&group| groups[group].part.count).collect(),
            gain: own.iter().map(|&group| groups[group].gain).sum::<f64>() - whole
                + pairs.values().map(|pair| pair.gap).sum::<f64>(),
            largest: own.iter().fold(whole.abs(), |largest, &group| largest.max(groups[group].gain.abs())),
        });
        let mut best = (f64::NEG_INFINITY, 0, 0);
        for (&(a, b), pair) in &pairs {
            // Without the weights a large part, which each cut makes much tighter, would be joined last.
            let weights = choices(groups[a].part.count, groups[b].part.count);
            let change = pair.both - groups[a].gain - groups[b].gain - pair.gap + weights;
            if change > best.0 {
                best = (change, a, b);
            }
        }
        let (_, a, b) = best;
        if a == b {
            break;
        }
        let joined = Group {
            parts: [groups[a].parts.clone(), groups[b].parts.clone()].concat(),
            part: groups[a].part.with(&groups[b].part),
            gain: pairs[&(a, b)].both,
        };
        alive.retain(|&group| group != a && group != b);
        for &other in &alive {
            let both = judge.gain(groups[other].part.with(&joined.part).sufficient())?;
            let gap = [a, b].map(|half| pairs[&(half.min(other), half.max(other))].gap).iter().sum();
            pairs.insert((other, groups.len()), Pair { both, gap });
        }
        pairs.retain(|&(x, y), _| ![x, y].iter().any(|&group| group == a || group == b));
        alive.push(groups.len());
        groups.push(joined);
    }
    Ok(levels)
}
