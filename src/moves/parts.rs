//! Judges the parts between which rows were split during the visits of a pass, and carries out accepted splits
//! (mathematics 4.6.2).
//!
//! Each row gave its responsibility for the target to one or two parts. The entropy of a group of parts is then the sum
//! of the parts' entropies minus the merge-entropy gaps of the pairs inside it. The same holds for the target with all
//! pairs. So the change of the bound for groups g follows from sums: `sum_g cum(S_g) - cum(S_k) + sum_{g < h} G_gh +
//! L*(N') - L*(N)` with `cum(S) = c(lambda_0 + S) - c(lambda_0)`, where the gap of two groups is the sum of the gaps of
//! their parts. There is no cancellation, because gaps are never negative.

use std::cell::Cell;
use std::collections::BTreeMap;

use crate::component::{ComponentId, Edit, EditLog, position};
use crate::error::{Error, Result};
use crate::evidence;
use crate::memo::Memo;
use crate::model::Model;
use crate::moves::judge::choices;
use crate::moves::lookahead::{Ahead, Unedited};
use crate::moves::{Judge, Part, Proposal, is_gain, tried};
use crate::parallel::try_map;
use crate::simd::Scalar;
use crate::suffstats::Summary;

/// Maximum number of rounds in which groupings are chosen under the base measure estimated after the previous ones.
const TURNS: usize = 3;
/// Changes of the bound that differ by at most this fraction of their largest term count as equal.
const TIE: f64 = 1e-12;

/// One grouping of the parts of a target.
struct Level {
    /// Positions of the parts of each group; the largest group is the first.
    groups: Vec<Vec<usize>>,
    counts: Vec<f64>,
    /// Merge-entropy gaps of all pairs of groups, nats.
    gaps: f64,
    /// The change of the bound without the weights' part, nats.
    gain: f64,
    /// Its largest term.
    largest: f64,
}

impl Level {
    /// Judges the grouping. `whole` and `gains` are the contributions of the target and of each group to the bound,
    /// without weights and entropies.
    fn judge(&mut self, whole: f64, gains: &[f64]) {
        self.gain = gains.iter().sum::<f64>() - whole + self.gaps;
        self.largest = gains.iter().fold(whole.abs(), |largest, gain| largest.max(gain.abs()));
    }
}

/// A proposal to whose parts rows of all batches have been assigned.
struct Candidate<'a> {
    /// Index of the proposal.
    index: usize,
    proposal: &'a Proposal,
    /// The position of its target.
    place: usize,
    /// Summaries of its parts over all batches.
    parts: Summary,
    levels: Vec<Level>,
}

impl Candidate<'_> {
    /// Judges the existing groupings with another judge.
    fn judge_again<F: Scalar>(&mut self, judge: &Judge<'_, F>, total: &Summary) -> Result<()> {
        let whole = judge.gain(total.component(self.place))?;
        let mut judged = Vec::new();
        for mut level in std::mem::take(&mut self.levels) {
            let ids = components(self.proposal, &level);
            let groups = grouped(std::slice::from_ref(&self.parts), &[(0, ids, level.groups.clone())])?;
            let gains = try_map(groups.n_components(), |k| judge.gain(groups.component(k)));
            if let Some(gains) = tried(gains)? {
                level.judge(whole, &gains);
                judged.push(level);
            }
        }
        self.levels = judged;
        Ok(())
    }
}

/// The outcome of a proposal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It was accepted.
    Accepted,
    /// It would have gained by itself, but better proposals were accepted first.
    Later,
    /// It does not gain.
    NoGain,
}

/// The outcome for the proposals of a pass.
pub(super) struct Settled {
    /// By proposal.
    pub verdicts: Vec<Verdict>,
    /// Total gain of the accepted proposals, nats.
    pub gain: f64,
    /// The component that each part now belongs to.
    pub owner: BTreeMap<ComponentId, ComponentId>,
}

/// Judges the proposals of a pass.
pub(super) struct Settle<'a, F: Scalar> {
    /// The model of the pass.
    pub model: &'a Model<F>,
    /// The proposals.
    pub proposals: &'a [Proposal],
    /// For each batch and proposal, the summary of its parts.
    pub parts: &'a [Vec<Summary>],
    /// Maximum number of accepted proposals.
    pub most: usize,
}

/// The proposals to accept, as pairs of a candidate index and a level, and their joint gain, nats.
#[derive(Default)]
struct Choice {
    chosen: Vec<(usize, usize)>,
    gain: f64,
}

impl<'a, F: Scalar> Settle<'a, F> {
    /// Judges every proposal by itself and accepts those that raise the bound, the best first, each with its best
    /// grouping. If none does and the place of the objective without
    /// edits is given, accepts those that together raise the objective under a
    /// re-estimated base measure, and returns the model with that base measure.
    pub fn run(
        &self,
        memo: &mut Memo,
        edits: &mut EditLog,
        unedited: Option<&Cell<Option<Unedited>>>,
    ) -> Result<(Settled, Option<Model<F>>)> {
        let n = self.proposals.len();
        let mut settled = Settled { verdicts: vec![Verdict::NoGain; n], gain: 0.0, owner: BTreeMap::new() };
        let mut candidates = try_map(n, |index| self.candidate(memo.total(), index))?;
        let mut choice = self.by_themselves(memo.total(), &candidates, &mut settled.verdicts);
        let mut ahead = None;
        if let Some(known) = unedited.filter(|_| choice.chosen.is_empty() && n > 0) {
            let unedited = Unedited::of(known, self.model, memo.total())?;
            (choice, ahead) = self.together(memo.total(), &mut candidates, unedited)?;
        }
        settled.gain = choice.gain;
        let (mut new, mut accepted) = (Vec::new(), Vec::new());
        for &(candidate, level) in &choice.chosen {
            let candidate = &candidates[candidate];
            let level = &candidate.levels[level];
            let ids = owners(candidate, level, &mut settled.owner);
            new.extend_from_slice(&ids[1..]);
            settled.verdicts[candidate.index] = Verdict::Accepted;
            accepted.push((candidate.index, ids, level.groups.clone()));
        }
        for (proposal, verdict) in self.proposals.iter().zip(&settled.verdicts) {
            if *verdict != Verdict::Accepted {
                settled.owner.extend(proposal.parts.ids.iter().map(|&part| (part, proposal.target)));
            }
        }
        if !new.is_empty() {
            let edit = Edit::Append { ids: new };
            memo.apply(&edit)?;
            edits.push(edit);
            for (_, ids, _) in &accepted {
                edits.inherit(ids[0], &ids[1..]);
            }
            let dealt: Vec<Summary> =
                self.parts.iter().map(|batch| grouped(batch, &accepted)).collect::<Result<_>>()?;
            memo.put(&dealt)?;
        }
        Ok((settled, ahead))
    }

    fn candidate(&self, total: &Summary, index: usize) -> Result<Candidate<'a>> {
        let proposal = &self.proposals[index];
        let mut parts = Summary::empty(proposal.parts.ids.clone(), total.n_statistics, true);
        for batch in self.parts {
            parts.add(&batch[index])?;
        }
        let place = position(&total.ids, proposal.target)?;
        let levels = tried(levels(&Judge::new(self.model), &Part::of(total, place), &parts))?.unwrap_or_default();
        Ok(Candidate { index, proposal, place, parts, levels })
    }

    /// The proposals that each raise the bound, the best first.
    fn by_themselves(&self, total: &Summary, candidates: &[Candidate<'_>], verdicts: &mut [Verdict]) -> Choice {
        let judge = Judge::new(self.model);
        let tail = judge.count_beyond(total);
        let mut counts = total.counts.clone();
        let mut before = judge.allocation(counts.clone(), tail);
        let mut left: Vec<(f64, usize)> = Vec::new();
        for (candidate, Candidate { levels, place, .. }) in candidates.iter().enumerate() {
            if let Some(Best { gain, is_gain: true, .. }) = best(&judge, levels, &counts, *place, before, tail) {
                verdicts[candidates[candidate].index] = Verdict::Later;
                left.push((gain, candidate));
            }
        }
        left.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let mut choice = Choice::default();
        for (_, candidate) in left.into_iter().take(self.most) {
            // Proposals accepted earlier have changed the weights.
            let Candidate { levels, place, .. } = &candidates[candidate];
            let best = best(&judge, levels, &counts, *place, before, tail);
            let Some(Best { level, gain, is_gain: true }) = best else { continue };
            counts[*place] = levels[level].counts[0];
            counts.extend_from_slice(&levels[level].counts[1..]);
            before = judge.allocation(counts.clone(), tail);
            choice.chosen.push((candidate, level));
            choice.gain += gain;
        }
        choice
    }

    /// The proposals that together are a gain under a re-estimated base measure. The groupings are chosen first under
    /// an uncertain base measure, and then again under the estimated one.
    fn together(
        &self,
        total: &Summary,
        candidates: &mut [Candidate<'_>],
        unedited: Unedited,
    ) -> Result<(Choice, Option<Model<F>>)> {
        let unsure = evidence::unsure(self.model, total)?;
        let tail = self.model.count_beyond(total);
        let mut best_so_far: Option<(Choice, Ahead<F>)> = None;
        for turn in 0..TURNS {
            let judge = Judge::new(best_so_far.as_ref().map_or(&unsure, |(_, ahead)| &ahead.model));
            let before = judge.allocation(total.counts.clone(), tail);
            let mut promised = Vec::new();
            for (index, candidate) in candidates.iter_mut().enumerate() {
                if turn > 0 {
                    candidate.judge_again(&judge, total)?;
                } else {
                    let found = levels(&judge, &Part::of(total, candidate.place), &candidate.parts);
                    candidate.levels = tried(found)?.unwrap_or_default();
                }
                let best = best(&judge, &candidate.levels, &total.counts, candidate.place, before, tail);
                promised.extend(best.map(|best| (best.gain, index, best.level)));
            }
            promised.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            promised.truncate(self.most);
            let chosen: Vec<(usize, usize)> =
                promised.into_iter().map(|(_, candidate, level)| (candidate, level)).collect();
            let after = |n: usize| edited(total, candidates, &chosen[..n]);
            let Some(ahead) = unedited.look_ahead(&unsure, chosen.len(), after)? else { break };
            if best_so_far.as_ref().is_some_and(|(_, best)| best.gain >= ahead.gain) {
                break;
            }
            best_so_far = Some((Choice { chosen: chosen[..ahead.n_edits].to_vec(), gain: ahead.gain }, ahead));
        }
        Ok(best_so_far.map_or_else(Default::default, |(choice, ahead)| (choice, Some(ahead.model))))
    }
}

/// Summaries of all components after accepting the chosen candidates at the given levels.
fn edited(total: &Summary, candidates: &[Candidate<'_>], chosen: &[(usize, usize)]) -> Result<Summary> {
    let mut after = total.clone();
    for &(candidate, level) in chosen {
        let Candidate { proposal, parts, levels, .. } = &candidates[candidate];
        let ids = components(proposal, &levels[level]);
        after.apply(&Edit::Append { ids: ids[1..].to_vec() })?;
        after.put(&grouped(std::slice::from_ref(parts), &[(0, ids, levels[level].groups.clone())])?)?;
    }
    Ok(after)
}

/// The components of the groups of a level; records the component that each part joins.
fn owners(
    candidate: &Candidate<'_>,
    level: &Level,
    owner: &mut BTreeMap<ComponentId, ComponentId>,
) -> Vec<ComponentId> {
    let Proposal { target, parts, .. } = candidate.proposal;
    let ids = components(candidate.proposal, level);
    for (group, &id) in level.groups.iter().zip(&ids) {
        owner.extend(group.iter().map(|&part| (parts.ids[part], id)));
    }
    // Parts without any rows.
    for &part in &parts.ids {
        owner.entry(part).or_insert(*target);
    }
    ids
}

/// The components that the groups of a level become: the first group keeps the identity of the target, and each other
/// group takes the identity of one of its parts.
fn components(proposal: &Proposal, level: &Level) -> Vec<ComponentId> {
    let others = level.groups.iter().skip(1).map(|group| proposal.parts.ids[group[0]]);
    std::iter::once(proposal.target).chain(others).collect()
}

/// A proposal, the components that its groups become, and the parts of each group.
type Accepted = (usize, Vec<ComponentId>, Vec<Vec<usize>>);

/// Summaries of one batch for the groups of the accepted proposals.
fn grouped(batch: &[Summary], accepted: &[Accepted]) -> Result<Summary> {
    let ids = accepted.iter().flat_map(|(_, ids, _)| ids.iter().copied()).collect();
    let is_sparse = batch.iter().any(|parts| parts.sparse.is_some());
    let empty = if is_sparse { Summary::empty_sparse } else { Summary::empty };
    let mut dealt = empty(ids, batch.first().map_or(0, |parts| parts.n_statistics), false);
    let groups = accepted.iter().flat_map(|(proposal, _, groups)| groups.iter().map(|group| (*proposal, group)));
    for (k, (proposal, group)) in groups.enumerate() {
        for (slot, &part) in group.iter().enumerate() {
            dealt.add_component(k, &batch[proposal], part);
            for &other in &group[..slot] {
                dealt.entropies[k] -= gap(&batch[proposal], other, part)?;
            }
        }
    }
    Ok(dealt)
}

/// The gap of two parts, accumulated while rows were split between them.
fn gap(parts: &Summary, a: usize, b: usize) -> Result<f64> {
    let (a, b) = (parts.ids[a], parts.ids[b]);
    parts.gaps.get(a, b).ok_or_else(|| Error::invalid("parts", format!("{a:?} and {b:?}"), "parts whose gap is known"))
}

/// A grouping of the parts of a component into two or more groups.
pub(super) struct Grouping {
    /// The parts of each group.
    pub groups: Vec<Vec<usize>>,
    /// The change of the bound, nats.
    pub gain: f64,
    /// Whether it is more than rounding.
    pub is_gain: bool,
}

/// The best grouping of the parts of the component at `place`, or `None` if it has only one part. `parts` holds their
/// sums over all rows or over a weighted subsample.
pub(super) fn grouping<F: Scalar>(
    judge: &Judge<'_, F>,
    total: &Summary,
    place: usize,
    parts: &Summary,
) -> Result<Option<Grouping>> {
    let mut whole = Part { count: 0.0, statistics: vec![0.0; parts.n_statistics] };
    for k in 0..parts.n_components() {
        whole = whole.with(&Part::of(parts, k));
    }
    let mut levels = levels(judge, &whole, parts)?;
    let tail = judge.count_beyond(total);
    // The parts may weigh more than the component, because they have the whole responsibility of rows that other
    // components share.
    let mut counts = total.counts.clone();
    counts[place] = whole.count;
    let before = judge.allocation(counts.clone(), tail);
    let best = best(judge, &levels, &counts, place, before, tail);
    Ok(best.map(|Best { level, gain, is_gain }| Grouping { groups: levels.swap_remove(level).groups, gain, is_gain }))
}

/// The best level.
struct Best {
    level: usize,
    /// The change of the bound, nats.
    gain: f64,
    /// Whether it is more than rounding.
    is_gain: bool,
}

/// The level with the largest gain; `before` is the current contribution of the weights to the bound.
fn best<F: Scalar>(
    judge: &Judge<'_, F>,
    levels: &[Level],
    counts: &[f64],
    place: usize,
    before: f64,
    tail: f64,
) -> Option<Best> {
    let of = |(index, level): (usize, &Level)| {
        let mut counts = counts.to_vec();
        counts[place] = level.counts[0];
        counts.extend_from_slice(&level.counts[1..]);
        let gain = level.gain + judge.allocation(counts, tail) - before;
        Best { level: index, gain, is_gain: is_gain(gain, [level.largest, before]) }
    };
    // Ties go to the first level.
    levels.iter().enumerate().map(of).reduce(|best, other| if other.gain > best.gain { other } else { best })
}

/// A group of parts of a target.
struct Group {
    parts: Vec<usize>,
    part: Part,
    /// Its contribution to the bound, without weights and entropies.
    gain: f64,
}

/// A pair of groups.
#[derive(Clone, Copy)]
struct Pair {
    /// Contribution of the union of both groups to the bound.
    both: f64,
    /// Their merge-entropy gap.
    gap: f64,
}

/// The pair of groups whose union raises the bound most. [`choices`] approximates the weights' part of the bound.
/// Without that part, a large group, whose pieces fit their rows much more closely, would be joined last. Pairs that
/// differ only by rounding are tied, as when a part is nearly empty. Ties go to the pair with the first parts.
fn next_pair(groups: &[Group], pairs: &BTreeMap<(usize, usize), Pair>) -> Option<(usize, usize)> {
    let mut size = 0.0_f64;
    let changes = pairs.iter().map(|(&(a, b), pair)| {
        let (x, y) = (&groups[a], &groups[b]);
        size = size.max(pair.both.abs()).max(x.gain.abs()).max(y.gain.abs());
        let first = |group: &Group| group.parts.iter().copied().min();
        let change = pair.both - x.gain - y.gain - pair.gap + choices(x.part.count, y.part.count);
        (change, [first(x).min(first(y)), first(x).max(first(y))], (a, b))
    });
    let changes: Vec<_> = changes.filter(|(change, ..)| *change > f64::NEG_INFINITY).collect();
    let most = changes.iter().fold(f64::NEG_INFINITY, |most, (change, ..)| most.max(*change));
    let equal = changes.into_iter().filter(|(change, ..)| *change >= most - TIE * (1.0 + size));
    equal.min_by_key(|(_, first, _)| *first).map(|(.., pair)| pair)
}

/// Groupings of all nonempty parts, from one group per part down to two groups. Each step joins the pair that raises
/// the bound most or lowers it least.
fn levels<F: Scalar>(judge: &Judge<'_, F>, target: &Part, parts: &Summary) -> Result<Vec<Level>> {
    let whole = judge.gain(target.sufficient())?;
    let mut groups: Vec<Group> = Vec::new();
    for k in (0..parts.n_components()).filter(|&k| parts.counts[k] > 0.0) {
        let part = Part::of(parts, k);
        let gain = judge.gain(part.sufficient())?;
        groups.push(Group { parts: vec![k], part, gain });
    }
    // The second of each pair comes later in the list.
    let mut pairs: BTreeMap<(usize, usize), Pair> = BTreeMap::new();
    let mut alive: Vec<usize> = (0..groups.len()).collect();
    for (index, &a) in alive.iter().enumerate() {
        for &b in &alive[index + 1..] {
            let both = judge.gain(groups[a].part.with(&groups[b].part).sufficient())?;
            let gap = gap(parts, groups[a].parts[0], groups[b].parts[0])?;
            pairs.insert((a, b), Pair { both, gap });
        }
    }
    let mut levels = Vec::new();
    while alive.len() > 1 {
        let mut largest_first: Vec<usize> = alive.clone();
        largest_first.sort_by(|&a, &b| groups[b].part.count.total_cmp(&groups[a].part.count).then(a.cmp(&b)));
        let mut level = Level {
            groups: largest_first.iter().map(|&group| groups[group].parts.clone()).collect(),
            counts: largest_first.iter().map(|&group| groups[group].part.count).collect(),
            gaps: pairs.values().map(|pair| pair.gap).sum(),
            gain: 0.0,
            largest: 0.0,
        };
        let gains: Vec<f64> = largest_first.iter().map(|&group| groups[group].gain).collect();
        level.judge(whole, &gains);
        levels.push(level);
        let Some((a, b)) = next_pair(&groups, &pairs) else { break };
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
