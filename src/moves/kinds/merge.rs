//! Merges: replace two components by one, judged from summaries alone (mathematics 4.5).

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::component::{ComponentId, Edit, EditLog, position};
use crate::error::Result;
use crate::memo::Memo;
use crate::model::Model;
use crate::moves::judge::choices;
use crate::moves::lookahead::{Ahead, look_ahead};
use crate::moves::{Judge, Move, MoveKind, MoveState, Part, Planning, Report, RunShape, Settling, is_gain};
use crate::parallel::{Cancel, map, try_map};
use crate::parameters::Parameters;
use crate::registry::Entry;
use crate::simd::Scalar;
use crate::suffstats::Summary;

const KIND: MoveKind = MoveKind::new("merge");
/// Maximum number of pairs per component whose gaps are computed. The best pairs of a pass are among them.
const PAIRS_PER_COMPONENT: usize = 4;
/// Number of passes after which pairs are ranked again if the list of components has not changed.
const RANK_AGAIN: usize = 5;

/// Two components. After a merge the first one survives.
type IdPair = (ComponentId, ComponentId);

/// Merges have no parameters.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Merge;

impl Merge {
    /// Entry in the registry.
    pub const ENTRY: Entry = Entry::new("Merge");

    /// Builds the move; it has no parameters.
    ///
    /// # Errors
    /// None.
    pub fn new(_: &Parameters) -> Result<Self> {
        Ok(Self)
    }
}

/// The last ranking of pairs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Ranking {
    /// The pass before which they were ranked.
    pass: usize,
    /// The components at that time, sorted by identity.
    ids: Vec<ComponentId>,
    /// The pairs, each with the smaller identity first.
    pairs: Vec<IdPair>,
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

    /// Lists pairs. They are ranked again if the components have changed, and at intervals.
    fn plan(&self, planning: &mut Planning<'_, '_, F>) -> Result<()> {
        let mut ids = planning.total().ids.clone();
        ids.sort_unstable();
        let pass = planning.pass;
        let known: &Ranking = planning.state.own.get_mut(&KIND)?;
        let is_known = known.ids == ids && pass < known.pass + RANK_AGAIN;
        if !is_known || planning.is_last_round() {
            // Once fresh components compete, planning must not be cancelled.
            let never = Cancel::default();
            let cancel = if planning.fresh.is_empty() { planning.round.cancel } else { &never };
            let judge = Judge::new(&planning.round.model);
            let pairs = rank(&judge, planning, cancel)?;
            *planning.state.own.get_mut(&KIND)? = Ranking { pass, ids, pairs };
        }
        let ranking: &Ranking = planning.state.own.get_mut(&KIND)?;
        planning.plan.pairs.extend(&ranking.pairs);
        Ok(())
    }

    fn settle(&self, settling: &mut Settling<'_, '_, F>) -> Result<Report> {
        let ranking: &mut Ranking = settling.state.own.get_mut(&KIND)?;
        ranking.pairs.retain(|(a, b)| !settling.fresh.contains(a) && !settling.fresh.contains(b));
        let pairs = &ranking.pairs;
        let mut merged = merge(&settling.judge, settling.memo, settling.edits, pairs, &settling.touched)?;
        if merged.accepted.is_empty() && settling.looks_ahead {
            let (accepted, ahead) = merge_together(&settling.round.model, settling.memo, settling.edits, pairs)?;
            merged.overlap -= accepted.len();
            (merged.accepted, merged.gain) = (accepted, ahead.as_ref().map_or(0.0, |ahead| ahead.gain));
            settling.ahead = ahead.map(|ahead| ahead.model);
        }
        for &(keep, gone) in &merged.accepted {
            settling.merged(keep, gone);
        }
        let refused = [("they overlap too much", merged.overlap), ("another move took one", merged.taken)];
        Ok(Report::new(KIND, merged.proposed, merged.accepted.len(), merged.gain, refused))
    }

    fn fits(&self, state: &MoveState, _: &RunShape<'_>) -> bool {
        state.own.get::<Ranking>(&KIND).is_ok_and(|own| own.is_none_or(|own| own.fits()))
    }
}

/// The pairs whose merge would raise the bound if their merge-entropy gap were zero, smaller identity first. Gaps are
/// never negative, so no other pair can be merged. Considers at most four times as many pairs as components, the most
/// promising first. Also includes the best four pairs of each `fresh` component, whatever their gain, because rows that
/// are counted twice make it look more distinct than it is. If the base measure may change, includes the promising
/// pairs even if they do not gain.
fn rank<F: Scalar>(judge: &Judge<'_, F>, planning: &Planning<'_, '_, F>, cancel: &Cancel) -> Result<Vec<IdPair>> {
    let (total, fresh, looks_ahead) = (planning.total(), &planning.fresh, planning.looks_ahead());
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
            let is_gain = || is_gain(pair.ratio + change(), [pair.both, gains[pair.a], gains[pair.b]]);
            is_tried && (looks_ahead || is_gain())
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

/// Two components and their union.
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

/// Result for the pairs of a pass.
#[derive(Default)]
pub(in crate::moves) struct Merged {
    pub proposed: usize,
    /// The merged components.
    pub accepted: Vec<IdPair>,
    /// Their total gain, nats.
    pub gain: f64,
    /// Number of refused pairs with too much overlap: the gap exceeded the rest of the gain.
    pub overlap: usize,
    /// Number of refused pairs of which another move had changed a component.
    pub taken: usize,
}

/// A pair with a known gap, smaller identity first.
struct Judged {
    pair: IdPair,
    /// The change of the bound without the weights' part, nats.
    change: f64,
    /// Its terms.
    terms: [f64; 3],
}

/// Judges the listed pairs with known gaps.
fn judged<F: Scalar>(judge: &Judge<'_, F>, total: &Summary, pairs: &[IdPair]) -> Result<Vec<Judged>> {
    let known: Vec<_> = pairs.iter().filter_map(|&(a, b)| Some((a, b, total.gaps.get(a, b)?))).collect();
    try_map(known.len(), |at| {
        let (a, b, gap) = known[at];
        let (x, y) = (Part::of(total, position(&total.ids, a)?), Part::of(total, position(&total.ids, b)?));
        let terms = [judge.gain(x.with(&y).sufficient())?, judge.gain(x.sufficient())?, judge.gain(y.sufficient())?];
        Ok(Judged { pair: (a, b), change: terms[0] - terms[1] - terms[2] - gap, terms })
    })
}

/// Merges the most promising of the listed pairs, each component at most once, if together they raise the objective
/// under a re-estimated base measure. Returns the merged pairs.
fn merge_together<F: Scalar>(
    model: &Model<F>,
    memo: &mut Memo,
    edits: &mut EditLog,
    pairs: &[IdPair],
) -> Result<(Vec<IdPair>, Option<Ahead<F>>)> {
    let (total, judge) = (memo.total(), Judge::new(model));
    let tail = total.tail.map_or(0.0, |tail| tail.count);
    let mut promised = judged(&judge, total, pairs)?;
    for Judged { pair: (a, b), change, .. } in &mut promised {
        *change += judge.allocation(joined(&total.counts, position(&total.ids, *a)?, position(&total.ids, *b)?), tail);
    }
    promised.sort_by(|x, y| y.change.total_cmp(&x.change).then(x.pair.cmp(&y.pair)));
    let mut taken = BTreeSet::new();
    let mut merges = Vec::new();
    for Judged { pair: (keep, gone), .. } in promised {
        if !taken.contains(&keep) && !taken.contains(&gone) {
            taken.extend([keep, gone]);
            merges.push((keep, gone));
        }
    }
    let edit = |&(keep, gone): &_| Edit::Merge { keep, gone };
    let after = |n: usize| {
        let mut after = total.clone();
        merges[..n].iter().try_for_each(|pair| after.apply(&edit(pair)))?;
        Ok(after)
    };
    let ahead = look_ahead(model, model, total, merges.len(), after)?;
    merges.truncate(ahead.as_ref().map_or(0, |ahead| ahead.n_edits));
    let all: Vec<Edit> = merges.iter().map(edit).collect();
    memo.apply_all(&all)?;
    for edit in all {
        edits.push(edit);
    }
    Ok((merges, ahead))
}

/// Merges those of the listed pairs that raise the bound, the best first, each component at most once. Components in
/// `touched` are excluded.
///
/// # Errors
/// [`crate::Error::Numerical`].
pub(in crate::moves) fn merge<F: Scalar>(
    judge: &Judge<'_, F>,
    memo: &mut Memo,
    edits: &mut EditLog,
    pairs: &[IdPair],
    touched: &BTreeSet<ComponentId>,
) -> Result<Merged> {
    let mut outcome = Merged { proposed: pairs.len(), ..Merged::default() };
    let mut touched = touched.clone();
    let total = memo.total().clone();
    let mut left = judged(judge, &total, pairs)?;
    outcome.taken = pairs.len() - left.len();
    let tail = total.tail.map_or(0.0, |tail| tail.count);
    let (mut ids, mut counts) = (total.ids.clone(), total.counts.clone());
    let mut merges = Vec::new();
    loop {
        let before = judge.allocation(counts.clone(), tail);
        let n = left.len();
        left.retain(|Judged { pair: (a, b), .. }| !touched.contains(a) && !touched.contains(b));
        outcome.taken += n - left.len();
        // Each merge changes the weights, and therefore the gains of all other pairs.
        let places: BTreeMap<ComponentId, usize> = ids.iter().copied().zip(0..).collect();
        let gains = map(left.len(), |at| {
            let Judged { pair: (a, b), change, terms } = left[at];
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
        // The older component survives.
        let (keep, gone) = (ids[a].min(ids[b]), ids[a].max(ids[b]));
        counts = joined(&counts, a, b);
        ids[a] = keep;
        ids.remove(b);
        touched.extend([keep, gone]);
        left.retain(|one| one.pair != (keep, gone) && one.pair != (gone, keep));
        outcome.accepted.push((keep, gone));
        outcome.gain += gain;
        merges.push(Edit::Merge { keep, gone });
    }
    outcome.overlap = left.len();
    memo.apply_all(&merges)?;
    for edit in merges {
        edits.push(edit);
    }
    Ok(outcome)
}
