//! Merges, from summaries alone (spec 4.5).

use std::collections::{BTreeMap, BTreeSet};

use crate::component::{ComponentId, Edit, EditLog, position};
use crate::error::Result;
use crate::memo::Memo;
use crate::moves::judge::{Judge, Part, choices, is_gain};
use crate::parallel::{Cancel, map, try_map};
use crate::simd::Scalar;
use crate::suffstats::Summary;

/// Pairs whose gaps are kept, for each component, at most: the best of a pass are among them.
const PAIRS_PER_COMPONENT: usize = 4;

/// The pairs whose merge would raise the bound if their merge-entropy gap were zero, smaller identity first. A gap is never
/// below zero, so no other pair can be merged. Of the most likely four times as many as there are components; and the best four of
/// each `fresh` one, whatever they promise: rows that are counted twice make it look more distinct than it is.
///
/// # Errors
/// [`crate::Error::Cancelled`]; [`crate::Error::Numerical`].
pub(super) fn rank<F: Scalar>(
    judge: &Judge<'_, F>,
    total: &Summary,
    fresh: &BTreeSet<ComponentId>,
    cancel: &Cancel,
) -> Result<Vec<(ComponentId, ComponentId)>> {
    let k = total.n_components();
    let tail = total.tail.map_or(0.0, |tail| tail.count);
    let before = judge.allocation(total.counts.clone(), tail);
    let parts: Vec<Part> = (0..k).map(|k| Part::of(total, k)).collect();
    let gains = try_map(k, |k| judge.gain(parts[k].sufficient()))?;
    let rows = try_map(k, |a| {
        cancel.check()?;
        let mut row = Vec::new();
        for b in a + 1..k {
            let both = judge.gain(parts[a].with(&parts[b]).sufficient())?;
            let choices = choices(parts[a].count, parts[b].count);
            row.push(Pair { a, b, both, ratio: both - gains[a] - gains[b], choices });
        }
        Ok(row)
    })?;
    let mut pairs: Vec<Pair> = rows.into_iter().flatten().collect();
    pairs.sort_by(|x, y| (y.ratio + y.choices).total_cmp(&(x.ratio + x.choices)).then((x.a, x.b).cmp(&(y.a, y.b))));
    let id = |at: usize| total.ids[at];
    let mut listed: BTreeMap<ComponentId, usize> = BTreeMap::new();
    let mut left = PAIRS_PER_COMPONENT * k;
    let mut kept = Vec::new();
    for pair in pairs {
        let own: Vec<_> = [id(pair.a), id(pair.b)].into_iter().filter(|id| fresh.contains(id)).collect();
        let is_wanted = if own.is_empty() {
            let change = || judge.allocation(merged(&total.counts, pair.a, pair.b), tail) - before;
            let is_tried = left > 0;
            left = left.saturating_sub(1);
            is_tried && is_gain(pair.ratio + change(), [pair.both, gains[pair.a], gains[pair.b]])
        } else {
            for &id in &own {
                *listed.entry(id).or_insert(0) += 1;
            }
            own.iter().any(|id| listed[id] <= PAIRS_PER_COMPONENT)
        };
        if is_wanted {
            kept.push((id(pair.a).min(id(pair.b)), id(pair.a).max(id(pair.b))));
        }
        if left == 0 && fresh.is_empty() {
            break;
        }
    }
    kept.sort_unstable();
    Ok(kept)
}

/// Two components and what they would be together.
struct Pair {
    a: usize,
    b: usize,
    both: f64,
    ratio: f64,
    choices: f64,
}

fn merged(counts: &[f64], a: usize, b: usize) -> Vec<f64> {
    let mut both = counts.to_vec();
    both[a] = counts[a] + counts[b];
    both.remove(b);
    both
}

/// What became of the pairs of a pass.
#[derive(Default)]
pub(super) struct Settled {
    pub proposed: usize,
    /// (component that lives on, component that ended, gain).
    pub accepted: Vec<(ComponentId, ComponentId, f64)>,
    /// Pairs that overlap too much: the gap was more than the rest of the gain.
    pub overlap: usize,
    /// Pairs of which another move had taken a component.
    pub taken: usize,
}

/// Merges of the listed pairs those that raise the bound, the best first, each component once; `touched` had their turn.
///
/// # Errors
/// [`crate::Error::Numerical`].
pub(super) fn settle<F: Scalar>(
    judge: &Judge<'_, F>,
    memo: &mut Memo,
    edits: &mut EditLog,
    pairs: &[(ComponentId, ComponentId)],
    touched: &BTreeSet<ComponentId>,
) -> Result<Settled> {
    let mut settled = Settled { proposed: pairs.len(), ..Settled::default() };
    let mut touched = touched.clone();
    let total = memo.total().clone();
    let known: Vec<_> = pairs.iter().filter_map(|&(a, b)| Some((a, b, total.gaps.get(a, b)?))).collect();
    settled.taken = pairs.len() - known.len();
    let mut left = try_map(known.len(), |at| {
        let (a, b, gap) = known[at];
        let (x, y) = (Part::of(&total, position(&total.ids, a)?), Part::of(&total, position(&total.ids, b)?));
        let terms = [judge.gain(x.with(&y).sufficient())?, judge.gain(x.sufficient())?, judge.gain(y.sufficient())?];
        Ok((a, b, terms[0] - terms[1] - terms[2] - gap, terms))
    })?;
    let tail = total.tail.map_or(0.0, |tail| tail.count);
    let (mut ids, mut counts) = (total.ids.clone(), total.counts.clone());
    let mut merges = Vec::new();
    loop {
        let before = judge.allocation(counts.clone(), tail);
        let n = left.len();
        left.retain(|(a, b, _, _)| !touched.contains(a) && !touched.contains(b));
        settled.taken += n - left.len();
        // Each merge changes the weights, and so what all others gain.
        let places: BTreeMap<ComponentId, usize> = ids.iter().copied().zip(0..).collect();
        let gains = map(left.len(), |at| {
            let (a, b, change, terms) = left[at];
            let (a, b) = (places[&a].min(places[&b]), places[&a].max(places[&b]));
            let gain = change + judge.allocation(merged(&counts, a, b), tail) - before;
            is_gain(gain, terms).then_some((gain, a, b))
        });
        let mut best: Option<(f64, usize, usize)> = None;
        for gain in gains.into_iter().flatten() {
            if best.is_none_or(|(other, ..)| gain.0 > other) {
                best = Some(gain);
            }
        }
        let Some((gain, a, b)) = best else { break };
        // The older one lives on.
        let (keep, gone) = (ids[a].min(ids[b]), ids[a].max(ids[b]));
        counts = merged(&counts, a, b);
        ids[a] = keep;
        ids.remove(b);
        touched.extend([keep, gone]);
        left.retain(|(x, y, _, _)| [*x, *y] != [keep, gone] && [*x, *y] != [gone, keep]);
        settled.accepted.push((keep, gone, gain));
        merges.push(Edit::Merge { keep, gone });
    }
    settled.overlap = left.len();
    memo.apply_all(&merges)?;
    for edit in merges {
        edits.push(edit);
    }
    Ok(settled)
}
