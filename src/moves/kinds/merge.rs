//! Merges: one component in the place of two, from summaries alone (mathematics 4.5).

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::component::{ComponentId, Edit, EditLog, position};
use crate::error::Result;
use crate::memo::Memo;
use crate::moves::judge::choices;
use crate::moves::{Judge, Move, MoveKind, MoveState, Part, Planning, Report, RunShape, Settling, is_gain};
use crate::parallel::{Cancel, map, try_map};
use crate::parameters::Parameters;
use crate::registry::Entry;
use crate::simd::Scalar;
use crate::suffstats::Summary;

const KIND: MoveKind = MoveKind::new("merge");
/// Maximum number of pairs whose gaps are kept, per component: the best of a pass are among them.
const PAIRS_PER_COMPONENT: usize = 4;
/// Passes after which pairs are ranked again where the list of components has not changed.
const RANK_AGAIN: usize = 5;

/// Merges have no parameters.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Merge;

impl Merge {
    /// The description for the registry.
    pub const ENTRY: Entry = Entry::new("Merge");

    /// There is one way to merge.
    ///
    /// # Errors
    /// None.
    pub fn new(_: &Parameters) -> Result<Self> {
        Ok(Self)
    }
}

/// The pairs that were ranked last.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Ranking {
    /// The pass before which they were ranked.
    pass: usize,
    /// The components then, in the order of their identities.
    ids: Vec<ComponentId>,
    /// The pairs, the smaller identity first.
    pairs: Vec<(ComponentId, ComponentId)>,
}

impl Ranking {
    fn fits(&self) -> bool {
        let is_known = |id| self.ids.binary_search(id).is_ok();
        self.pairs.iter().all(|(a, b)| a < b && is_known(a) && is_known(b))
    }
}

impl<F: Scalar> Move<F> for Merge {
    fn kind(&self) -> MoveKind {
        KIND
    }

    /// Lists pairs. They are ranked again where the components have changed, and now and then.
    fn plan(&self, planning: &mut Planning<'_, '_, F>) -> Result<()> {
        let mut ids = planning.total().ids.clone();
        ids.sort_unstable();
        let pass = planning.pass;
        let known: &Ranking = planning.state.own.get_mut(&KIND)?;
        let is_known = known.ids == ids && pass < known.pass + RANK_AGAIN;
        if !is_known || planning.is_last_round() {
            // Where fresh components have begun to compete there is no way back.
            let never = Cancel::default();
            let cancel = if planning.fresh.is_empty() { planning.round.cancel } else { &never };
            let judge = Judge::new(&planning.round.model);
            let pairs = rank(&judge, planning.total(), &planning.fresh, cancel)?;
            *planning.state.own.get_mut(&KIND)? = Ranking { pass, ids, pairs };
        }
        let ranking: &Ranking = planning.state.own.get_mut(&KIND)?;
        planning.plan.pairs.extend(&ranking.pairs);
        Ok(())
    }

    fn settle(&self, settling: &mut Settling<'_, '_, F>) -> Result<Report> {
        let ranking: &mut Ranking = settling.state.own.get_mut(&KIND)?;
        ranking.pairs.retain(|(a, b)| !settling.fresh.contains(a) && !settling.fresh.contains(b));
        let merged = merge(&settling.judge, settling.memo, settling.edits, &ranking.pairs, &settling.touched)?;
        for &(keep, gone, _) in &merged.accepted {
            settling.merged(keep, gone);
        }
        let gain = merged.accepted.iter().fold(0.0, |sum, (_, _, gain)| sum + gain);
        let refused = [("they overlap too much", merged.overlap), ("another move took one", merged.taken)];
        Ok(Report::new(KIND, merged.proposed, merged.accepted.len(), gain, refused))
    }

    fn fits(&self, state: &MoveState, _: &RunShape<'_>) -> bool {
        state.own.get::<Ranking>(&KIND).is_ok_and(|own| own.is_none_or(|own| own.fits()))
    }
}

/// The pairs whose merge would raise the bound if their merge-entropy gap were zero, smaller identity first. A gap is
/// never below zero, so no other pair can be merged. At most four times as many as there are components, the most
/// likely first. Also the best four of each `fresh` component, whatever they promise: rows that are counted twice make
/// it look more distinct than it is.
fn rank<F: Scalar>(
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
            row.push(MergePair { a, b, both, ratio: both - gains[a] - gains[b], choices });
        }
        Ok(row)
    })?;
    let mut pairs: Vec<MergePair> = rows.into_iter().flatten().collect();
    pairs.sort_by(|x, y| (y.ratio + y.choices).total_cmp(&(x.ratio + x.choices)).then((x.a, x.b).cmp(&(y.a, y.b))));
    let id = |at: usize| total.ids[at];
    let mut listed: BTreeMap<ComponentId, usize> = BTreeMap::new();
    let mut left = PAIRS_PER_COMPONENT * k;
    let mut kept = Vec::new();
    for pair in pairs {
        let own: Vec<_> = [id(pair.a), id(pair.b)].into_iter().filter(|id| fresh.contains(id)).collect();
        let is_wanted = if own.is_empty() {
            let change = || judge.allocation(joined(&total.counts, pair.a, pair.b), tail) - before;
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
struct MergePair {
    a: usize,
    b: usize,
    both: f64,
    ratio: f64,
    choices: f64,
}

fn joined(counts: &[f64], a: usize, b: usize) -> Vec<f64> {
    let mut both = counts.to_vec();
    both[a] = counts[a] + counts[b];
    both.remove(b);
    both
}

/// The outcome for the pairs of a pass.
#[derive(Default)]
pub(in crate::moves) struct Merged {
    pub proposed: usize,
    /// (component that lives on, component that ended, gain).
    pub accepted: Vec<(ComponentId, ComponentId, f64)>,
    /// Pairs that overlap too much: the gap was more than the rest of the gain.
    pub overlap: usize,
    /// Pairs of which another move had taken a component.
    pub taken: usize,
}

/// Merges of the listed pairs those that raise the bound, the best first, each component once; `touched` had their
/// turn.
///
/// # Errors
/// [`crate::Error::Numerical`].
pub(in crate::moves) fn merge<F: Scalar>(
    judge: &Judge<'_, F>,
    memo: &mut Memo,
    edits: &mut EditLog,
    pairs: &[(ComponentId, ComponentId)],
    touched: &BTreeSet<ComponentId>,
) -> Result<Merged> {
    let mut outcome = Merged { proposed: pairs.len(), ..Merged::default() };
    let mut touched = touched.clone();
    let total = memo.total().clone();
    let known: Vec<_> = pairs.iter().filter_map(|&(a, b)| Some((a, b, total.gaps.get(a, b)?))).collect();
    outcome.taken = pairs.len() - known.len();
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
        outcome.taken += n - left.len();
        // Each merge changes the weights, and so what all others gain.
        let places: BTreeMap<ComponentId, usize> = ids.iter().copied().zip(0..).collect();
        let gains = map(left.len(), |at| {
            let (a, b, change, terms) = left[at];
            let (a, b) = (places[&a].min(places[&b]), places[&a].max(places[&b]));
            let gain = change + judge.allocation(joined(&counts, a, b), tail) - before;
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
        counts = joined(&counts, a, b);
        ids[a] = keep;
        ids.remove(b);
        touched.extend([keep, gone]);
        left.retain(|(x, y, _, _)| [*x, *y] != [keep, gone] && [*x, *y] != [gone, keep]);
        outcome.accepted.push((keep, gone, gain));
        merges.push(Edit::Merge { keep, gone });
    }
    outcome.overlap = left.len();
    memo.apply_all(&merges)?;
    for edit in merges {
        edits.push(edit);
    }
    Ok(outcome)
}
