//! Merges: replace two components by one, judged from summaries alone (mathematics 4.5).

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::{Deserialize, Serialize};

use crate::component::{ComponentId, Edit, EditLog, unknown};
use crate::error::Result;
use crate::memo::Memo;
use crate::model::Model;
use crate::moves::joined::{JoinedPair, JoinedPairs, JoinedRows};
use crate::moves::judge::choices;
use crate::moves::lookahead::{Ahead, Unedited};
use crate::moves::nearest::nearest;
use crate::moves::weighing::Weighing;
use crate::moves::{
    Judge, Move, MoveKind, MoveState, Part, Payload, Planning, Report, RunShape, Settling, Visited, is_gain, tried,
};
use crate::parallel::{Cancel, map, try_map};
use crate::parameters::Parameters;
use crate::registry::Entry;
use crate::responsibilities::best_of;
use crate::simd::Scalar;
use crate::suffstats::Summary;

const KIND: MoveKind = MoveKind::new("merge");
/// Maximum number of pairs per component whose gaps are computed. The best pairs of a pass are among them.
const PAIRS_PER_COMPONENT: usize = 4;
/// Maximum number of components for which all pairs are ranked. With more components, only pairs that are near each
/// other or share rows are ranked.
const ALL_PAIRS: usize = 200;
/// If not all pairs are ranked: the number of nearest components with which each component is paired, and the number of
/// components that share most of its rows.
const NEAREST: usize = 10;
/// Number of passes after which pairs are ranked again if the list of components has not changed.
const RANK_AGAIN: usize = 5;

/// Number of pairs of a component whose rows are summed under what they would become.
const SUMMED: usize = 2;

/// Two components. After a merge the first one survives.
type IdPair = (ComponentId, ComponentId);

/// How much pairs of components, smaller identity first, overlap. A row counts for the two components with the largest
/// responsibilities for it, with its mass times the smaller of these two responsibilities.
type SharedRows = BTreeMap<IdPair, f64>;

/// What visits are to look for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct WantedPairs {
    /// Whether to find pairs that share rows.
    shared: bool,
    /// Pairs whose rows are to be summed under the component that they would become.
    joined: JoinedPairs,
}

/// What they find.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct FoundPairs {
    shared: SharedRows,
    joined: JoinedRows,
}

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
    /// The same, the most promising first.
    best: Vec<IdPair>,
    /// Pairs that shared rows in the last pass; empty if all pairs are ranked.
    shared: Vec<IdPair>,
}

impl Ranking {
    fn fits(&self) -> bool {
        let is_known = |id| self.ids.binary_search(id).is_ok();
        self.pairs.iter().chain(&self.best).all(|(a, b)| a < b && is_known(a) && is_known(b))
            && self.shared.iter().all(|(a, b)| a < b)
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
        let (pass, is_large) = (planning.pass, ids.len() > ALL_PAIRS);
        let mut ranking = planning.state.payloads.get_mut::<Ranking>(&KIND)?.clone();
        let is_known = ranking.ids == ids && pass < ranking.pass + RANK_AGAIN;
        if !is_known || planning.is_last_round() {
            // Once fresh components compete, planning must not be cancelled.
            let never = Cancel::default();
            let cancel = if planning.fresh.is_empty() { planning.round.cancel } else { &never };
            let (model, total) = (&planning.round.model, planning.total());
            let shared = &ranking.shared;
            let candidates = if is_large { near(model, total, shared, cancel)? } else { all(total.n_components()) };
            let best = rank(&Judge::new(model), planning, &candidates, cancel)?;
            let mut pairs = best.clone();
            pairs.sort_unstable();
            ranking = Ranking { pass, ids, pairs, best, ..ranking };
        }
        planning.plan.pairs.extend(&ranking.pairs);
        let model = &planning.round.model;
        let listed = if model.likelihood.completes() { promising(&ranking.pairs, &ranking.best) } else { Vec::new() };
        if is_large || !listed.is_empty() {
            let joined = JoinedPairs::new(model, planning.total(), listed);
            planning.plan.wanted.put(KIND, Payload::new(WantedPairs { shared: is_large, joined }));
        }
        *planning.state.payloads.get_mut(&KIND)? = ranking;
        Ok(())
    }

    /// Finds pairs that share rows, and sums up the rows of pairs.
    fn look(&self, wanted: &Payload, visited: &Visited<'_, F>) -> Result<Option<Payload>> {
        let wanted = wanted.get::<WantedPairs>()?;
        let joined = wanted.joined.look(visited)?;
        if !wanted.shared {
            return Ok(Some(Payload::new(FoundPairs { joined, ..FoundPairs::default() })));
        }
        let (look, blocks) = (visited.look, visited.look.seen.blocks());
        let by_block = map(blocks.len(), |index| {
            let mut shared: HashMap<(u32, u32), f64> = HashMap::new();
            for (unit, components, values) in blocks[index].units().filter(|(_, components, _)| components.len() > 1) {
                let (a, b, second) = best_pair(components, values);
                *shared.entry((a.min(b), a.max(b))).or_default() += look.units.mass(unit) * second;
            }
            shared
        });
        let mut shared = SharedRows::new();
        for ((a, b), sum) in by_block.into_iter().flatten() {
            // The tail is no component.
            if let (Some(&a), Some(&b)) = (look.ids.get(a as usize), look.ids.get(b as usize)) {
                *shared.entry((a.min(b), a.max(b))).or_default() += sum;
            }
        }
        Ok(Some(Payload::new(FoundPairs { shared, joined })))
    }

    fn take(&self, _: &Payload, found: Option<Payload>, findings: Payload) -> Result<Payload> {
        let mut all = found.map_or_else(|| Ok(FoundPairs::default()), Payload::into_value)?;
        let FoundPairs { shared, joined } = findings.into_value()?;
        for (pair, sum) in shared {
            *all.shared.entry(pair).or_default() += sum;
        }
        all.joined.append(joined)?;
        Ok(Payload::new(all))
    }

    fn settle(&self, settling: &mut Settling<'_, '_, F>) -> Result<Report> {
        let wanted: WantedPairs = settling.state.plan.wanted.take(&KIND)?;
        let FoundPairs { shared, joined } = settling.state.found.payloads.take(&KIND)?;
        let (shared, joined) = (most_shared(&shared), wanted.joined.sums(&joined));
        let ranking: &mut Ranking = settling.state.payloads.get_mut(&KIND)?;
        ranking.shared = shared;
        ranking.pairs.retain(|(a, b)| !settling.fresh.contains(a) && !settling.fresh.contains(b));
        let pairs = &ranking.pairs;
        let mut merged = merge(&settling.judge, settling.memo, settling.edits, pairs, &joined, &settling.touched)?;
        if merged.accepted.is_empty() && settling.looks_ahead {
            let Settling { round, memo, edits, unedited, .. } = settling;
            let (accepted, ahead) = merge_together(&round.model, memo, edits, pairs, &joined, unedited)?;
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

    fn fits(&self, state: &MoveState, shape: &RunShape<'_>) -> bool {
        let (wanted, found) =
            (state.plan.wanted.get::<WantedPairs>(&KIND), state.found.payloads.get::<FoundPairs>(&KIND));
        let n_pairs = |wanted: &WantedPairs| wanted.joined.len();
        let n = wanted.as_ref().map_or(0, |wanted| wanted.as_deref().map_or(0, n_pairs));
        let fits = |wanted: &WantedPairs| wanted.joined.fits(shape.ids, shape.n_statistics);
        let goes = |found: &FoundPairs| found.joined.fits(n, shape.n_statistics, shape.n_batches);
        state.payloads.get::<Ranking>(&KIND).is_ok_and(|ranking| ranking.is_none_or(|ranking| ranking.fits()))
            && wanted.is_ok_and(|wanted| wanted.is_none_or(|wanted| fits(&wanted)))
            && found.is_ok_and(|found| found.is_none_or(|found| goes(&found)))
    }
}

/// The two components with the largest responsibilities for a unit that has two, and the second largest responsibility.
fn best_pair(components: &[u32], values: &[f64]) -> (u32, u32, f64) {
    let first = best_of(components, values);
    let others = components.iter().zip(values).filter(|(component, _)| **component != first);
    let larger = |one: (u32, f64), (&other, &value): (&u32, &f64)| if value > one.1 { (other, value) } else { one };
    let (second, value) = others.fold((first, 0.0), larger);
    (first, second, value)
}

/// For each component, its pairs with the components that share most of its rows.
fn most_shared(shared: &SharedRows) -> Vec<IdPair> {
    let mut pairs: Vec<(&IdPair, &f64)> = shared.iter().collect();
    pairs.sort_by(|x, y| y.1.total_cmp(x.1).then(x.0.cmp(y.0)));
    let mut listed: BTreeMap<ComponentId, usize> = BTreeMap::new();
    let mut is_listed = |id| {
        let n = listed.entry(id).or_default();
        *n += 1;
        *n <= NEAREST
    };
    let mut kept: Vec<IdPair> =
        pairs.into_iter().map(|(pair, _)| *pair).filter(|&(a, b)| is_listed(a) | is_listed(b)).collect();
    kept.sort_unstable();
    kept
}

/// All pairs: for each of `k` components, the positions of all later components.
fn all(k: usize) -> Vec<Vec<usize>> {
    (0..k).map(|a| (a + 1..k).collect()).collect()
}

/// For each component, the positions of the later components that are near it or share its rows.
fn near<F: Scalar>(model: &Model<F>, total: &Summary, shared: &[IdPair], cancel: &Cancel) -> Result<Vec<Vec<usize>>> {
    let (places, mut behind) = (places(total), vec![BTreeSet::new(); total.n_components()]);
    let nearest = tried(nearest(model, total, NEAREST, cancel))?.unwrap_or_default();
    let near = nearest.iter().enumerate().flat_map(|(a, others)| others.iter().map(move |&b| (a, b)));
    let sharing = shared.iter().filter_map(|(a, b)| Some((*places.get(a)?, *places.get(b)?)));
    for (a, b) in near.chain(sharing) {
        behind[a.min(b)].insert(a.max(b));
    }
    Ok(behind.into_iter().map(|others| others.into_iter().collect()).collect())
}

/// The positions of all components.
fn places(total: &Summary) -> HashMap<ComponentId, usize> {
    total.ids.iter().copied().zip(0..).collect()
}

/// The candidates, listed with each component, whose merge would raise the bound if their merge-entropy gap were zero,
/// smaller identity first. Gaps are never negative, so no other pair can be merged. Considers at most four times as
/// many pairs as components, the most promising first. Also includes the best four pairs of each `fresh` component,
/// whatever their gain, because rows that are counted twice make it look more distinct than it is. If the base measure
/// may change, includes the promising pairs even if they do not gain. A component is merged only with one of its class,
/// and a free one with a free one.
fn rank<F: Scalar>(
    judge: &Judge<'_, F>,
    planning: &Planning<'_, '_, F>,
    candidates: &[Vec<usize>],
    cancel: &Cancel,
) -> Result<Vec<IdPair>> {
    let (total, fresh, looks_ahead) = (planning.total(), &planning.fresh, planning.looks_ahead());
    // Then sums are only a lower bound.
    let completes = planning.round.model.likelihood.completes();
    let (k, classes) = (total.n_components(), planning.edits.classes(&total.ids));
    let weighing = Weighing::new(judge, total);
    let parts: Vec<Part> = (0..k).map(|k| Part::of(total, k)).collect();
    let gains = try_map(k, |k| judge.gain(parts[k].sufficient()))?;
    let rows = try_map(k, |a| {
        cancel.check()?;
        let mut row = Vec::new();
        for &b in candidates[a].iter().filter(|&&b| classes[a] == classes[b]) {
            let both = judge.gain(parts[a].with(&parts[b]).sufficient())?;
            let choices = choices(parts[a].count, parts[b].count);
            row.push(MergePair { a, b, both, ratio: both - gains[a] - gains[b], choices });
        }
        Ok(row)
    })?;
    let mut pairs: Vec<MergePair> = rows.into_iter().flatten().collect();
    pairs.sort_by(|x, y| (y.ratio + y.choices).total_cmp(&(x.ratio + x.choices)).then((x.a, x.b).cmp(&(y.a, y.b))));
    let id = |k: usize| total.ids[k];
    let mut listed: BTreeMap<ComponentId, usize> = BTreeMap::new();
    let mut left = PAIRS_PER_COMPONENT * k;
    let mut kept = Vec::new();
    for pair in pairs {
        let fresh_ids: Vec<_> = [id(pair.a), id(pair.b)].into_iter().filter(|id| fresh.contains(id)).collect();
        let is_wanted = if fresh_ids.is_empty() {
            let change = || weighing.change([parts[pair.a].count, parts[pair.b].count]);
            let is_tried = left > 0;
            left = left.saturating_sub(1);
            let is_gain = || is_gain(pair.ratio + change(), [pair.both, gains[pair.a], gains[pair.b]]);
            is_tried && (looks_ahead || completes || is_gain())
        } else {
            for &id in &fresh_ids {
                *listed.entry(id).or_insert(0) += 1;
            }
            fresh_ids.iter().any(|id| listed[id] <= PAIRS_PER_COMPONENT)
        };
        if is_wanted {
            kept.push((id(pair.a).min(id(pair.b)), id(pair.a).max(id(pair.b))));
        }
        if left == 0 && fresh.is_empty() {
            break;
        }
    }
    Ok(kept)
}

/// The listed pairs whose rows are summed: the most promising ones, each component in few of them.
fn promising(pairs: &[IdPair], best: &[IdPair]) -> Vec<IdPair> {
    let mut listed: BTreeMap<ComponentId, usize> = BTreeMap::new();
    let is_free = |listed: &BTreeMap<ComponentId, usize>, id| listed.get(id).is_none_or(|n| *n < SUMMED);
    let mut chosen = Vec::new();
    for pair in best.iter().filter(|pair| pairs.contains(pair)) {
        if is_free(&listed, &pair.0) && is_free(&listed, &pair.1) {
            for id in [pair.0, pair.1] {
                *listed.entry(id).or_default() += 1;
            }
            chosen.push(*pair);
        }
    }
    chosen
}

/// Two components and their union.
struct MergePair {
    a: usize,
    b: usize,
    both: f64,
    ratio: f64,
    choices: f64,
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
    counts: [f64; 2],
    /// The change of the bound without the weights' part, nats.
    change: f64,
    /// Its terms.
    terms: [f64; 3],
    /// The change of the bound as long as no pair has been merged, nats.
    first: f64,
}

/// Judges the listed pairs with known gaps. Returns them in order of their gains.
fn judged<F: Scalar>(
    judge: &Judge<'_, F>,
    weighing: &Weighing<'_, F>,
    total: &Summary,
    pairs: &[IdPair],
    joined: &BTreeMap<IdPair, JoinedPair>,
) -> Result<Vec<Judged>> {
    let places = places(total);
    let place = |id| places.get(&id).copied().ok_or_else(|| unknown(id));
    let known: Vec<_> = pairs.iter().filter_map(|&(a, b)| Some((a, b, total.gaps.get(a, b)?))).collect();
    let ids: BTreeSet<ComponentId> = known.iter().flat_map(|&(a, b, _)| [a, b]).collect();
    let ids: Vec<ComponentId> = ids.into_iter().collect();
    let alone = try_map(ids.len(), |index| judge.gain(Part::of(total, place(ids[index])?).sufficient()))?;
    let alone: HashMap<ComponentId, f64> = ids.into_iter().zip(alone).collect();
    let mut judged = try_map(known.len(), |index| {
        let (a, b, gap) = known[index];
        let parts = [Part::of(total, place(a)?), Part::of(total, place(b)?)];
        let sum = parts[0].with(&parts[1]);
        let both = joined.get(&(a, b)).map_or(&sum, |pair| &pair.total);
        let terms = [judge.gain(both.sufficient())?, alone[&a], alone[&b]];
        let (counts, change) = ([parts[0].count, parts[1].count], terms[0] - terms[1] - terms[2] - gap);
        Ok(Judged { pair: (a, b), counts, change, terms, first: change + weighing.change(counts) })
    })?;
    judged.sort_by(|x, y| y.first.total_cmp(&x.first).then(x.pair.cmp(&y.pair)));
    Ok(judged)
}

/// Merges the most promising of the listed pairs, each component at most once, if together they raise the objective
/// under a re-estimated base measure. Returns the merged pairs.
fn merge_together<F: Scalar>(
    model: &Model<F>,
    memo: &mut Memo,
    edits: &mut EditLog,
    pairs: &[IdPair],
    joined: &BTreeMap<IdPair, JoinedPair>,
    known: &Cell<Option<Unedited>>,
) -> Result<(Vec<IdPair>, Option<Ahead<F>>)> {
    let (total, judge) = (memo.total(), Judge::new(model));
    let mut taken = BTreeSet::new();
    let mut merges = Vec::new();
    for Judged { pair: (keep, gone), .. } in judged(&judge, &Weighing::new(&judge, total), total, pairs, joined)? {
        if !taken.contains(&keep) && !taken.contains(&gone) {
            taken.extend([keep, gone]);
            merges.push((keep, gone));
        }
    }
    let after = |n: usize| {
        let mut after = total.clone();
        after.apply_all(&edits_of(&merges[..n]))?;
        for (keep, sums) in merges[..n].iter().filter_map(|pair| Some((pair.0, joined.get(pair)?))) {
            after.restate(keep, &sums.total.statistics)?;
        }
        Ok(after)
    };
    let ahead = Unedited::of(known, model, total)?.look_ahead(model, merges.len(), after)?;
    let n = ahead.as_ref().map_or(0, |ahead| ahead.n_edits);
    merges.truncate(n);
    Ok((carry_out(memo, edits, merges, joined)?, ahead))
}

/// Merges those of the listed pairs that raise the bound, in order of their gains, each component at most once.
/// Components in `touched` are excluded. Pairs in `joined` are judged by these sums.
///
/// # Errors
/// [`crate::Error::Numerical`].
pub(in crate::moves) fn merge<F: Scalar>(
    judge: &Judge<'_, F>,
    memo: &mut Memo,
    edits: &mut EditLog,
    pairs: &[IdPair],
    joined: &BTreeMap<IdPair, JoinedPair>,
    touched: &BTreeSet<ComponentId>,
) -> Result<Merged> {
    let mut outcome = Merged { proposed: pairs.len(), ..Merged::default() };
    let mut touched = touched.clone();
    let mut weighing = Weighing::new(judge, memo.total());
    let judged = judged(judge, &weighing, memo.total(), pairs, joined)?;
    let mut merges = Vec::new();
    for Judged { pair: (keep, gone), counts, change, terms, first } in &judged {
        if *first <= 0.0 || touched.contains(keep) || touched.contains(gone) {
            continue;
        }
        // Earlier merges have changed the weights.
        let gain = change + weighing.change(*counts);
        if is_gain(gain, *terms) {
            weighing.merge(*counts);
            touched.extend([*keep, *gone]);
            outcome.gain += gain;
            merges.push((*keep, *gone));
        }
    }
    let is_left = |one: &&Judged| !touched.contains(&one.pair.0) && !touched.contains(&one.pair.1);
    outcome.overlap = judged.iter().filter(is_left).count();
    outcome.taken = outcome.proposed - outcome.overlap - merges.len();
    outcome.accepted = carry_out(memo, edits, merges, joined)?;
    Ok(outcome)
}

fn edits_of(merges: &[IdPair]) -> Vec<Edit> {
    merges.iter().map(|&(keep, gone)| Edit::Merge { keep, gone }).collect()
}

/// Carries out merges.
fn carry_out(
    memo: &mut Memo,
    edits: &mut EditLog,
    merges: Vec<IdPair>,
    joined: &BTreeMap<IdPair, JoinedPair>,
) -> Result<Vec<IdPair>> {
    let all = edits_of(&merges);
    memo.apply_all(&all)?;
    for (keep, sums) in merges.iter().filter_map(|pair| Some((pair.0, joined.get(pair)?))) {
        sums.put(memo, keep)?;
    }
    if !joined.is_empty() {
        memo.resum()?;
    }
    for edit in all {
        edits.push(edit);
    }
    Ok(merges)
}
