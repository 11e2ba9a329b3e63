//! A run that records every responsibility. Visits are observed, and each move is repeated on a table of
//! responsibilities, so that everything the core computes from sums can be computed from scratch.

use std::collections::BTreeMap;

use stickbreak::component::{ComponentId, Edit, EditLog};
use stickbreak::data::{ArrayBatches, BatchSource, RowUnits, Rows, Sample};
use stickbreak::elbo::collapsed;
use stickbreak::error::Error;
use stickbreak::evidence;
use stickbreak::executor::{Executor, InProcess};
use stickbreak::global_step::Globals;
use stickbreak::local_step::{Assign, ByScore, FromTable, Keep, LocalStep, RawScores, Tap};
use stickbreak::memo::Memo;
use stickbreak::model::Model;
use stickbreak::moves::delete::CandidateRows;
use stickbreak::moves::{Bag, MoveKind, MoveState, Moves, Plan, Report, Round, RowCopies};
use stickbreak::parallel::Cancel;
use stickbreak::responsibilities::Sparsity;
use stickbreak::special::ln_beta;
use stickbreak::suffstats::Summary;
use stickbreak::visits::{LocalOptions, RowKind};

use super::taps::{All, Count, Shares, Watch};

const BIRTH: MoveKind = MoveKind::new("birth");
const DELETE: MoveKind = MoveKind::new("delete");

/// Settings of a run.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    pub n_batches: usize,
    pub sparsity: Sparsity,
    pub margin: Option<f64>,
    pub seed: u64,
    /// Maximum number of rows of a shard.
    pub shard_rows: usize,
}

/// State before fresh components appeared.
struct Adoption {
    fresh: Vec<ComponentId>,
    table: Vec<Shares>,
    /// The bound, if all batches had been visited.
    bound: Option<f64>,
}

pub struct Replay<'a> {
    /// The model with the base measure of the pass.
    model: Model<f64>,
    rows: &'a dyn Rows<f64>,
    weights: Option<&'a [f64]>,
    /// The batches in one shard each.
    batches: &'a ArrayBatches<'a, f64>,
    setting: Setting,
    cancel: Cancel,
    executor: InProcess<'a, f64>,
    watch: InProcess<'a, f64>,
    pub memo: Memo,
    edits: EditLog,
    pub state: MoveState,
    pub pass: usize,
    /// The responsibilities of every row.
    table: Vec<Shares>,
    /// For each row and target, the responsibilities of the target's parts.
    dealt: Vec<BTreeMap<ComponentId, Shares>>,
    /// Set if fresh components compete for all rows of the pass.
    adoption: Option<Adoption>,
    /// The kinds that were judged under the base measure after the move.
    pub ahead: Vec<MoveKind>,
}

impl<'a> Replay<'a> {
    /// Starts from labels 0 .. `k`.
    pub fn new(
        model: &'a Model<f64>,
        rows: &'a dyn Rows<f64>,
        weights: Option<&'a [f64]>,
        source: &'a ArrayBatches<'a, f64>,
        batches: &'a ArrayBatches<'a, f64>,
        setting: Setting,
        labels: &[u32],
    ) -> Self {
        let k = labels.iter().max().map_or(0, |&label| label as usize + 1);
        let edits = EditLog::with_components(k);
        let options =
            LocalOptions { sparsity: setting.sparsity, margin: setting.margin, bounds_memory: 1, keep: Keep::Summary };
        let executor = || InProcess::new(&RowKind, model, source, options, Cancel::default()).expect("in memory");
        let table: Vec<Shares> = labels.iter().map(|&label| [(ComponentId(label), 1.0)].into()).collect();
        let units = RowUnits::all(rows, weights);
        let ids = edits.components().expect("one append");
        let cancel = Cancel::default();
        let start = start(model, rows, weights, &ids, labels);
        let mut state = MoveState::default();
        if k == 1 {
            state.start_from(ComponentId(0), bag(&units));
        }
        let mass = units.total_mass();
        Self {
            model: model.clone(),
            rows,
            weights,
            batches,
            setting,
            cancel,
            executor: executor(),
            watch: executor(),
            memo: Memo::starting_from(start, setting.n_batches, mass),
            edits,
            state,
            pass: 0,
            dealt: vec![BTreeMap::new(); table.len()],
            table,
            adoption: None,
            ahead: Vec::new(),
        }
    }

    pub fn bound(&self) -> f64 {
        collapsed(&self.model, self.memo.total()).expect("definite").total()
    }

    /// Runs one pass with these moves. Compares all results of sums with results from the responsibilities.
    pub fn pass(&mut self, moves: &Moves) -> Vec<Report> {
        let cancel = self.cancel.clone();
        let moves = moves.list();
        let round = Round {
            model: self.model.clone(),
            moves: &moves,
            sparsity: self.setting.sparsity,
            margin: self.setting.margin,
            seed: self.setting.seed,
            n_batches: self.setting.n_batches,
            cancel: &cancel,
        };
        let (before, guard) = (self.memo.is_complete().then(|| self.bound()), self.guard());
        assert!(!round.is_planned(&self.state, self.pass));
        self.dealt.iter_mut().for_each(BTreeMap::clear);
        self.plan(&round, before);
        for visit in 0..self.setting.n_batches {
            self.visit(&round, (visit + self.pass) % self.setting.n_batches, visit);
        }
        self.memo.resum().expect("same components");
        self.reorder();
        let swept = self.check_sweep() + self.guard();
        let reports = self.settle(&round);
        self.reorder();
        self.check_memo();
        let gain: f64 = reports.iter().map(|report| report.gain).sum();
        assert!(reports.iter().all(|report| report.accepted <= report.proposed && report.gain >= 0.0), "{reports:?}");
        match self.adoption.take() {
            None => {
                self.assert_near(self.bound() + self.guard() - swept, gain, "what the moves gained");
                if let Some(before) = before.filter(|_| self.setting.margin.is_none()) {
                    let before = before + guard;
                    assert!(swept >= before - 1e-9 * (1.0 + before.abs()), "a sweep: from {before} to {swept}");
                }
            }
            // The gain of the pass itself cannot be separated from that of fresh components.
            Some(Adoption { bound: Some(before), .. }) if reports[0].accepted > 0 => {
                self.assert_near(self.bound() - before, gain, "what the pass gained");
            }
            Some(_) => {}
        }
        self.raise_evidence();
        self.pass += 1;
        // If nothing is left to try, the next pass tries everything again.
        let round = Round { model: self.model.clone(), ..round };
        round.is_exhausted(&mut self.state, self.memo.total(), &reports, self.pass);
        reports
    }

    /// The guard of the base measure, nats.
    fn guard(&self) -> f64 {
        evidence::guard(&self.model).expect("definite")
    }

    /// Updates the base measure between passes. The objective rises by the reported amount.
    fn raise_evidence(&mut self) {
        let Some((model, gain)) = evidence::raise(&self.model, self.memo.total()).filter(|_| self.memo.is_complete())
        else {
            return;
        };
        let objective = |replay: &Self| replay.bound() + replay.guard();
        let before = objective(self);
        self.model = model;
        self.assert_near(objective(self) - before, gain, "what the base measure gained");
        assert!(gain >= 0.0);
    }

    /// An interrupt leaves the state unchanged, or comes too late.
    fn interrupt_plan(&self, round: &Round<'_, f64>) {
        let interrupted = interrupt();
        let (mut state, mut memo, mut edits) = (self.state.clone(), self.memo.clone(), self.edits.clone());
        match (Round { cancel: &interrupted, model: round.model.clone(), ..*round })
            .plan(&mut state, &mut memo, &mut edits, self.pass)
        {
            Ok(()) => assert!(round.is_planned(&state, self.pass)),
            Err(error) => {
                assert!(matches!(error, Error::Cancelled), "{error}");
                // Missing are NaN, which is not equal to itself.
                assert!(format!("{state:?}") == format!("{:?}", self.state), "another state");
                assert_eq!(edits.version(), self.edits.version());
                assert_eq!(memo.total(), self.memo.total());
            }
        }
    }

    /// Plans the pass. Fresh components start empty: the bound over all batches stays (mathematics 4.6.3, number 1),
    /// and the total is that of the batches plus the copied rows (number 2).
    fn plan(&mut self, round: &Round<'_, f64>, before: Option<f64>) {
        let version = self.edits.version();
        let known = self.memo.total().clone();
        self.interrupt_plan(round);
        round.plan(&mut self.state, &mut self.memo, &mut self.edits, self.pass).expect("definite");
        let [Edit::Append { ids }] = self.edits.since(version) else {
            assert_eq!(self.edits.version(), version);
            return;
        };
        assert!(!self.memo.is_complete());
        let total = self.memo.total();
        for (k, id) in total.ids.iter().enumerate() {
            let position = known.ids.iter().position(|other| other == id);
            assert_eq!(position.is_none(), ids.contains(id));
            assert!(
                position.map_or(total.counts[k] > 0.0, |position| (total.counts[k] - known.counts[position]).abs()
                    <= 1e-9 * known.mass)
            );
        }
        assert_eq!(total.mass, known.mass);
        if before.is_some() {
            let mut alone = self.memo.clone();
            alone.deflate().expect("the same components");
            let [old, new] = [&known, alone.total()].map(|total| collapsed(&self.model, total).expect("definite"));
            self.assert_near(new.data + new.entropy, old.data + old.entropy, "empty components");
            // With a tail, or with a prior on the concentration, an additional stick lowers the bound (mathematics 7,
            // number 11).
            assert!(new.allocation <= old.allocation + 1e-9 * (1.0 + old.allocation.abs()));
        }
        self.adoption = Some(Adoption { fresh: ids.clone(), table: self.table.clone(), bound: before });
    }

    /// Returns the bound after the visits of the pass, and checks the gaps.
    fn check_sweep(&self) -> f64 {
        let mut memo = self.memo.clone();
        memo.deflate().expect("the same components");
        assert!(memo.is_complete());
        self.check_gaps(memo.total());
        collapsed(&self.model, memo.total()).expect("definite").total()
    }

    fn visit(&mut self, round: &Round<'_, f64>, batch: usize, visit_number: usize) {
        let version = (self.pass * self.setting.n_batches + visit_number) as u64;
        let globals = Globals::new(&self.model, self.memo.total(), version);
        let visit = self.executor.visit(batch, &globals, &self.edits, &self.state.plan).expect("finite");
        let mut n_kept = vec![0; self.table.len()];
        let (mut watch, mut count) = (Watch { ids: &globals.ids, rows: &mut self.table }, Count(&mut n_kept));
        let taps: &mut [&mut dyn Tap] = &mut [&mut watch, &mut count];
        let seen = self.watch.visit_with_taps(batch, &globals, &self.edits, taps).expect("finite");
        // Looking for moves changes nothing.
        assert_eq!(
            (&visit.summary.counts, &visit.summary.statistics, &visit.summary.sparse),
            (&seen.summary.counts, &seen.summary.statistics, &seen.summary.sparse)
        );
        assert_eq!((&visit.summary.entropies, &visit.summary.tail), (&seen.summary.entropies, &seen.summary.tail));

        let units = self.batches.load(batch).expect("in memory");
        let proposals = self.state.plan.proposals.clone();
        assert_eq!(proposals.len(), visit.findings.parts.len());
        let targets: Vec<ComponentId> = proposals.iter().map(|proposal| proposal.target).collect();
        let most = self.setting.sparsity.clamp(usize::MAX);
        // For each row, the targets whose responsibilities are split between parts: the largest ones for which slots
        // are free.
        let divided = |row: usize| {
            let mut owners: Vec<ComponentId> =
                targets.iter().copied().filter(|id| self.table[row].contains_key(id)).collect();
            owners.sort_by(|a, b| self.table[row][b].total_cmp(&self.table[row][a]));
            owners.truncate(most.saturating_sub(n_kept[row]));
            owners
        };
        let room: Vec<Vec<ComponentId>> = (0..self.table.len()).map(divided).collect();
        for (proposal, parts) in proposals.iter().zip(&visit.findings.parts) {
            self.deal(&units, &room, proposal.target, &proposal.parts);
            let shares = self.shares_of_parts(proposal.target);
            let ids = &proposal.parts.ids;
            let sums = run(&self.model, &units, ids, &values_of(&units, ids, &shares), &self.cancel);
            assert_same(parts, &sums, "parts of a batch");
            assert_same_gaps(parts, &units, &shares);
        }
        let found = visit.findings.payloads.get::<CandidateRows>(&DELETE).expect("of a delete");
        self.check_copies(&found.unwrap_or_default().copies, &units, &targets);
        round.take(&mut self.state, batch, visit.findings).expect("findings of this round");
        self.memo.replace(batch, visit.summary).expect("same components");
    }

    /// Divides each row's responsibility for the target between the two parts with the largest scores, in proportion to
    /// their exponentials. Without a free slot the first part gets all of it.
    fn deal(&mut self, units: &RowUnits<'_, f64>, room: &[Vec<ComponentId>], target: ComponentId, parts: &Globals) {
        let mut scores = vec![Vec::new(); self.table.len()];
        let model = self.model.with_base(parts.base.clone()).expect("a base measure");
        let scorer = parts.scorer_without_tail(&model).expect("definite");
        let raw = RawScores { scorer: scorer.as_ref() };
        let unused = LocalStep { keep: Keep::Nothing, ..step(&self.model, &parts.ids, &raw, &self.cancel) };
        unused.run(units, None, &mut [&mut All(&mut scores)]).expect("finite");
        for row in (0..units.len()).map(|unit| units.row_number(unit)) {
            let Some(&share) = self.table[row].get(&target) else { continue };
            let mut order: Vec<usize> = (0..parts.ids.len()).collect();
            order.sort_by(|&a, &b| scores[row][b].total_cmp(&scores[row][a]));
            let lead = scores[row][order[0]] - scores[row][order[1]];
            let second = if room[row].contains(&target) && lead <= 20.0 { 1.0 / (1.0 + lead.exp()) } else { 0.0 };
            let halves = [(order[0], share * (1.0 - second)), (order[1], share * second)];
            let carried = halves.into_iter().filter(|(_, value)| *value > 0.0);
            self.dealt[row].insert(target, carried.map(|(part, value)| (parts.ids[part], value)).collect());
        }
    }

    /// For each row, the responsibilities of the target's parts.
    fn shares_of_parts(&self, target: ComponentId) -> Vec<Shares> {
        self.dealt.iter().map(|dealt| dealt.get(&target).cloned().unwrap_or_default()).collect()
    }

    /// The copies of rows for delete candidates have all responsibilities, with parts in place of their targets.
    fn check_copies(&self, copies: &[RowCopies], units: &RowUnits<'_, f64>, targets: &[ComponentId]) {
        let candidates =
            self.state.plan.wanted.get::<Vec<ComponentId>>(&DELETE).expect("of a delete").unwrap_or_default();
        let is_listed = |shares: &Shares| candidates.iter().any(|id| shares.contains_key(id));
        let listed: Vec<usize> =
            (0..units.len()).filter(|&unit| is_listed(&self.table[units.row_number(unit)])).collect();
        assert_eq!(copies.iter().map(|some| some.rows.len()).sum::<usize>(), listed.len());
        // Equal rows have equal responsibilities.
        let mut expected: BTreeMap<Vec<u64>, Shares> = BTreeMap::new();
        for unit in listed {
            let row = units.row_number(unit);
            let mut all = self.table[row].clone();
            all.retain(|id, _| !targets.contains(id));
            all.extend(self.dealt[row].values().flatten().map(|(&id, &value)| (id, value)));
            expected.insert(bits(units, unit), all);
        }
        for RowCopies { rows, shares, .. } in copies {
            let rows = rows.units::<f64>(1.0);
            for position in 0..rows.len() {
                let pairs: Vec<(ComponentId, f64)> = shares.of(position).collect();
                let expected = &expected[&bits(&rows, position)];
                assert_eq!(pairs.len(), expected.len(), "{pairs:?} {expected:?}");
                assert!(pairs.iter().all(|(id, value)| (value - expected[id]).abs() <= 1e-11), "{pairs:?}");
            }
        }
    }

    /// Lets the round judge, and applies the reported edits to the responsibilities.
    fn settle(&mut self, round: &Round<'_, f64>) -> Vec<Report> {
        let (plan, version) = (self.state.plan.clone(), self.edits.version());
        let mut ids = self.memo.total().ids.clone();
        // An interrupt takes effect after everything is judged.
        let interrupted = interrupt();
        let round = Round { cancel: &interrupted, model: round.model.clone(), ..*round };
        let mut objective = self.bound_from_scratch(&ids) + self.guard();
        let unsure = evidence::unsure(&self.model, self.memo.total()).expect("definite");
        let (reports, ahead) =
            round.settle(&mut self.state, &mut self.memo, &mut self.edits, self.pass).expect("definite");
        let log = self.edits.since(version).to_vec();
        let fresh = self.adoption.as_ref().map_or(&[][..], |adoption| &adoption.fresh).to_vec();
        let mut gains: BTreeMap<MoveKind, (usize, f64)> = BTreeMap::new();
        if let Some(Adoption { table, bound, .. }) = &mut self.adoption {
            // A round reports the order only if nothing else changed.
            if matches!(log.last(), Some(Edit::Reorder { .. })) {
                self.table = std::mem::take(table);
                assert_eq!((reports.len(), reports[0].accepted, reports[0].gain), (1, 0, 0.0));
                let before = bound.expect("a bound that fell");
                self.assert_near(self.bound(), before, "what there was before");
                return reports;
            }
            let bound = *bound;
            let gain = bound.map_or(0.0, |bound| self.bound_from_scratch(&ids) - bound);
            gains.insert(BIRTH, (reports[0].accepted, gain));
        }
        for edit in log {
            let before = self.bound_from_scratch(&ids);
            let kind = match &edit {
                Edit::Append { ids: new } => {
                    let model = if ahead.is_some() { unsure.clone() } else { self.model.clone() };
                    self.split(&model, &plan, new)
                }
                Edit::Merge { keep, gone } => {
                    for shares in &mut self.table {
                        if let Some(value) = shares.remove(gone) {
                            *shares.entry(*keep).or_default() += value;
                        }
                    }
                    // Merges of fresh components are counted with their births.
                    if fresh.contains(keep) || fresh.contains(gone) { (BIRTH, 0) } else { (MoveKind::new("merge"), 1) }
                }
                Edit::Delete { id } => {
                    self.refit(&round, &ids, *id);
                    (DELETE, 1)
                }
                Edit::Reorder { .. } => panic!("a round leaves the order to the engine"),
            };
            edit.apply_to(&mut ids).expect("an edit that the memo took");
            let after = self.bound_from_scratch(&ids);
            if kind == (BIRTH, 0) {
                // Other moves begin where none of the fresh components remains.
                objective = after + self.guard();
            }
            let sum = gains.entry(kind.0).or_default();
            *sum = (sum.0 + kind.1, sum.1 + after - before);
        }
        // A pass makes no other edits after one that is judged under another base measure.
        if let Some(model) = ahead {
            // Fresh components may have competed for rows before, if none of them remained.
            gains.retain(|_, (accepted, _)| *accepted > 0);
            assert_eq!(gains.len(), 1, "{gains:?}");
            self.model = model;
            let gain = self.bound_from_scratch(&ids) + self.guard() - objective;
            for (kind, sum) in &mut gains {
                sum.1 = gain;
                self.ahead.push(kind.clone());
            }
        }
        self.compare(&reports, gains);
        reports
    }

    /// Compares reports with the numbers of edits and the gains of the responsibilities.
    fn compare(&self, reports: &[Report], mut gains: BTreeMap<MoveKind, (usize, f64)>) {
        // Without a known bound, or without remaining fresh components, the gain of the pass is not attributed to them.
        let not_theirs =
            self.adoption.as_ref().is_some_and(|adoption| adoption.bound.is_none() || reports[0].accepted == 0);
        for report in reports {
            let (accepted, gain) = gains.remove(&report.kind).unwrap_or_default();
            assert_eq!(report.accepted, accepted, "{report:?}");
            if report.kind == BIRTH && not_theirs {
                assert_eq!(report.gain, 0.0);
            } else {
                self.assert_near(report.gain, gain, report.kind.name());
            }
        }
        assert!(gains.is_empty());
    }

    /// Replaces targets by groups of parts: one group for each new component, and one for the target.
    fn split(&mut self, model: &Model<f64>, plan: &Plan, new: &[ComponentId]) -> (MoveKind, usize) {
        let of_new = plan.proposals.iter().filter(|proposal| proposal.parts.ids.iter().any(|id| new.contains(id)));
        let mut accepted = (BIRTH, 0);
        for proposal in of_new {
            let heads: Vec<_> = proposal.parts.ids.iter().filter(|id| new.contains(id)).copied().collect();
            let units = RowUnits::all(self.rows, self.weights);
            let of_parts = self.shares_of_parts(proposal.target);
            let groups = groups(model, &units, &proposal.parts.ids, &of_parts, heads.len() + 1, &self.cancel);
            for (shares, of_parts) in self.table.iter_mut().zip(&of_parts).filter(|(_, of_row)| !of_row.is_empty()) {
                shares.remove(&proposal.target).expect("a row of the target");
                for group in &groups {
                    let owner = group.iter().find(|id| heads.contains(id)).copied().unwrap_or(proposal.target);
                    let value = share_of(of_parts, group);
                    if value > 0.0 {
                        shares.insert(owner, value);
                    }
                }
            }
            accepted = (proposal.kind.clone(), accepted.1 + 1);
        }
        accepted
    }

    /// Redistributes the rows of `gone`: twice computes globals from all other rows plus these, and responsibilities
    /// under them.
    fn refit(&mut self, round: &Round<'_, f64>, ids: &[ComponentId], gone: ComponentId) {
        let rows_of_gone: Vec<u32> =
            (0..self.table.len()).filter(|&row| self.table[row].contains_key(&gone)).map(|row| row as u32).collect();
        let others: Vec<u32> =
            (0..self.table.len() as u32).filter(|row| rows_of_gone.binary_search(row).is_err()).collect();
        let left: Vec<ComponentId> = ids.iter().filter(|id| **id != gone).copied().collect();
        let all = RowUnits::all(self.rows, self.weights);
        let (mine, theirs) = (all.select(&rows_of_gone), all.select(&others));
        let shares: Vec<f64> = rows_of_gone.iter().map(|&row| self.table[row as usize].values().sum()).collect();
        let mut rest = run(&self.model, &theirs, &left, &values_of(&theirs, &left, &self.table), &self.cancel);
        rest.tail.clone_from(&self.memo.total().tail);
        // A tail keeps its slot in a row whenever its responsibility exceeds rounding.
        let taken_by_tail = usize::from(rest.tail.is_some() && shares.iter().any(|share| *share < 1.0 - 1e-12));
        let n_places = round.sparsity.clamp(ids.len() + taken_by_tail) - taken_by_tail;
        self.table.iter_mut().for_each(|shares| shares.retain(|id, _| *id != gone));
        for turn in 0..2 {
            let mut current = run(&self.model, &mine, &left, &values_of(&mine, &left, &self.table), &self.cancel);
            current.add(&rest).expect("the same components");
            let globals = Globals::new(&self.model, &current, turn);
            let scorer = globals.scorer_without_tail(&self.model).expect("definite");
            let deal = ByScore {
                scorer: scorer.as_ref(),
                has_tail: false,
                width: n_places.clamp(1, left.len()),
                margin: round.margin,
                abandon: false,
                row_terms: false,
                mask: None,
            };
            let mut watch = Watch { ids: &left, rows: &mut self.table };
            step(&self.model, &left, &deal, &self.cancel).run(&mine, None, &mut [&mut watch]).expect("finite");
            for (&row, share) in rows_of_gone.iter().zip(&shares) {
                self.table[row as usize].values_mut().for_each(|value| *value *= share);
            }
        }
    }

    /// Merge-entropy gaps of the listed pairs: H_a + H_b - H_ab of all rows.
    fn check_gaps(&self, total: &Summary) {
        let units = RowUnits::all(self.rows, self.weights);
        let entropy = |share: f64| if share > 0.0 { -share * share.ln() } else { 0.0 };
        for &(a, b) in &self.state.plan.pairs {
            let found = total.gaps.get(a, b).expect("listed");
            let mut gap = 0.0;
            for (row, shares) in self.table.iter().enumerate() {
                let share = |id| shares.get(&id).copied().unwrap_or(0.0);
                gap += units.mass(row) * (entropy(share(a)) + entropy(share(b)) - entropy(share(a) + share(b)));
            }
            assert!(found >= 0.0);
            // Entropies of a row are at most one nat, and cancel.
            assert!((found - gap).abs() <= 1e-14 * total.mass + 1e-9 * gap, "{found} {gap}");
        }
    }

    /// Checks that every batch and the total equal the sums of the responsibilities, which are as sparse as a visit
    /// makes them.
    fn check_memo(&self) {
        let most = self.setting.sparsity.clamp(usize::MAX);
        assert!(self.table.iter().all(|shares| shares.len() <= most));
        let mut sum = Summary::empty(self.memo.total().ids.clone(), self.memo.total().n_statistics, false);
        for batch in 0..self.setting.n_batches {
            let units = self.batches.load(batch).expect("in memory");
            let found = self.memo.batch(batch).expect("visited");
            let expected =
                run(&self.model, &units, &found.ids, &values_of(&units, &found.ids, &self.table), &self.cancel);
            assert_same(found, &expected, "a batch");
            sum.add(found).expect("the same components");
        }
        assert_same(self.memo.total(), &sum, "the total");
        let explained: f64 = self.memo.total().counts.iter().sum();
        let tail = self.memo.total().tail_count();
        self.assert_near(explained + tail, RowUnits::all(self.rows, self.weights).total_mass(), "the mass");
        assert!(self.memo.total().counts.iter().all(|&count| count > -1e-9));
        self.assert_near(self.bound(), self.bound_from_scratch(&self.memo.total().ids), "the bound");
        assert_eq!(self.edits.components().expect("a log"), self.memo.total().ids);
    }

    /// Computes the bound of the responsibilities, with the components in the order of their counts. The tail is
    /// unchanged.
    fn bound_from_scratch(&self, ids: &[ComponentId]) -> f64 {
        let units = RowUnits::all(self.rows, self.weights);
        let mut summary = run(&self.model, &units, ids, &values_of(&units, ids, &self.table), &self.cancel);
        let total = self.memo.total();
        summary.tail.clone_from(&total.tail);
        (summary.log_base_measure, summary.mass) = (total.log_base_measure, total.mass);
        if let Some(order) = falling(&summary) {
            summary.apply(&order).expect("a permutation");
        }
        collapsed(&self.model, &summary).expect("definite").total()
    }

    fn reorder(&mut self) {
        if let Some(edit) = falling(self.memo.total()) {
            self.memo.apply(&edit).expect("a permutation");
            self.edits.push(edit);
        }
    }

    /// Asserts equality up to the rounding of sums of the size of the bound.
    fn assert_near(&self, found: f64, expected: f64, what: &str) {
        let size = 1.0 + self.memo.total().mass + self.bound().abs();
        assert!((found - expected).abs() <= 1e-10 * size, "{what}: {found} and {expected}, of {size}");
    }
}

fn falling(summary: &Summary) -> Option<Edit> {
    let mut order: Vec<usize> = (0..summary.n_components()).collect();
    order.sort_by(|&a, &b| summary.counts[b].total_cmp(&summary.counts[a]));
    (!order.is_sorted()).then(|| Edit::Reorder { order: order.iter().map(|&position| summary.ids[position]).collect() })
}

/// The bits of a row.
fn bits(units: &RowUnits<'_, f64>, unit: usize) -> Vec<u64> {
    let mut row = vec![0.0; units.dimension()];
    units.read([unit], &vec![0.0; units.dimension()], &mut row);
    row.into_iter().map(f64::to_bits).collect()
}

/// The part of each row that components have, for rows with these labels.
pub fn start(
    model: &Model<f64>,
    rows: &dyn Rows<f64>,
    weights: Option<&[f64]>,
    ids: &[ComponentId],
    labels: &[u32],
) -> Summary {
    let units = RowUnits::all(rows, weights);
    let table: Vec<Shares> = labels.iter().map(|&label| [(ComponentId(label), 1.0)].into()).collect();
    run(model, &units, ids, &values_of(&units, ids, &table), &Cancel::default())
}

/// All rows with their numbers as keys.
fn bag(units: &RowUnits<'_, f64>) -> Bag {
    let mut rows = Sample::default();
    rows.extend(units, &(0..units.len() as u32).collect::<Vec<_>>());
    Bag { rows, keys: (0..units.len() as u64).collect() }
}

/// Responsibilities as the table that [`FromTable`] takes: (all rows, K).
fn values_of(units: &RowUnits<'_, f64>, ids: &[ComponentId], shares: &[Shares]) -> Vec<f64> {
    let mut values = vec![0.0; shares.len() * ids.len()];
    for row in (0..units.len()).map(|unit| units.row_number(unit)) {
        for (k, id) in ids.iter().enumerate() {
            values[row * ids.len() + k] = shares[row].get(id).copied().unwrap_or(0.0);
        }
    }
    values
}

fn step<'a>(
    model: &'a Model<f64>,
    ids: &'a [ComponentId],
    assign: &'a dyn Assign<f64>,
    cancel: &'a Cancel,
) -> LocalStep<'a, f64> {
    LocalStep { likelihood: model.likelihood.as_ref(), ids, assign, keep: Keep::Summary, cancel }
}

fn run(model: &Model<f64>, units: &RowUnits<'_, f64>, ids: &[ComponentId], values: &[f64], cancel: &Cancel) -> Summary {
    let table = FromTable { values, n_components: ids.len() };
    step(model, ids, &table, cancel).run(units, None, &mut []).expect("finite").summary
}

/// The total responsibility of a row for some components.
fn share_of(shares: &Shares, ids: &[ComponentId]) -> f64 {
    ids.iter().filter_map(|id| shares.get(id)).sum()
}

/// The merge-entropy gap of two groups of components, H_a + H_b - H_ab of all units.
fn gap(units: &RowUnits<'_, f64>, shares: &[Shares], a: &[ComponentId], b: &[ComponentId]) -> f64 {
    let entropy = |share: f64| if share > 0.0 { -share * share.ln() } else { 0.0 };
    let of_unit = |unit: usize| {
        let shares = &shares[units.row_number(unit)];
        let (p, q) = (share_of(shares, a), share_of(shares, b));
        units.mass(unit) * (entropy(p) + entropy(q) - entropy(p + q))
    };
    (0..units.len()).map(of_unit).sum()
}

/// Groups the parts with any rows into `n` groups: repeatedly joins the two groups whose join raises the bound most
/// (mathematics 4.6.2 and 4.5).
fn groups(
    model: &Model<f64>,
    units: &RowUnits<'_, f64>,
    ids: &[ComponentId],
    shares: &[Shares],
    n: usize,
    cancel: &Cancel,
) -> Vec<Vec<ComponentId>> {
    let parts = run(model, units, ids, &values_of(units, ids, shares), cancel);
    let mut groups: Vec<(Vec<ComponentId>, Summary)> = Vec::new();
    for k in (0..parts.n_components()).filter(|&k| parts.counts[k] > 0.0) {
        let mut summary = Summary::empty(vec![ComponentId(0)], parts.n_statistics, false);
        summary.add_component(0, &parts, k);
        groups.push((vec![parts.ids[k]], summary));
    }
    let gain = |summary: &Summary| model.likelihood.gain(summary.component(0), model.objective).expect("definite");
    let both = |a: &Summary, b: &Summary| {
        let mut sum = a.clone();
        sum.add(b).expect("one component each");
        sum
    };
    let place = |id: &ComponentId| ids.iter().position(|other| other == id).expect("a part");
    let first = |group: &(Vec<ComponentId>, Summary)| group.0.iter().map(place).min().expect("not empty");
    while groups.len() > n {
        let (mut size, mut changes) = (1.0_f64, Vec::new());
        for a in 0..groups.len() {
            for b in a + 1..groups.len() {
                let (x, y) = (&groups[a], &groups[b]);
                let (n, m) = (x.1.counts[0], y.1.counts[0]);
                let terms = [gain(&both(&x.1, &y.1)), gain(&x.1), gain(&y.1)];
                size = terms.iter().fold(size, |size, term| size.max(term.abs()));
                let change = terms[0] - terms[1] - terms[2] + ln_choose(n + m, n) - gap(units, shares, &x.0, &y.0);
                changes.push((change, [first(x).min(first(y)), first(x).max(first(y))], (a, b)));
            }
        }
        // The first of those that differ only by rounding.
        let most = changes.iter().fold(f64::NEG_INFINITY, |most, change| most.max(change.0));
        let equal = changes.iter().filter(|change| change.0 >= most - 1e-12 * size);
        let &(_, _, pair) = equal.min_by_key(|change| change.1).expect("two groups");
        let gone = groups.remove(pair.1);
        let kept = &mut groups[pair.0];
        kept.0.extend(gone.0);
        kept.1 = both(&kept.1, &gone.1);
    }
    groups.into_iter().map(|(ids, _)| ids).collect()
}

/// Logarithm of the number of ways to choose `k` of `n`.
fn ln_choose(n: f64, k: f64) -> f64 {
    -(n + 1.0).ln() - ln_beta(n - k + 1.0, k + 1.0)
}

/// Asserts that counts, statistics and entropies are equal by identity, up to rounding.
fn assert_same(found: &Summary, expected: &Summary, what: &str) {
    assert_eq!(found.ids.len(), expected.ids.len(), "{what}");
    let (found, expected) = (&found.clone().into_dense(), &expected.clone().into_dense());
    let p = found.n_statistics;
    let scale = |values: &[f64]| values.iter().fold(1.0_f64, |largest, value| largest.max(value.abs()));
    let sizes = [scale(&expected.counts), scale(&expected.entropies), scale(&expected.statistics)];
    for (k, id) in found.ids.iter().enumerate() {
        let position = expected.ids.iter().position(|other| other == id).expect("the same components");
        let near = |a: f64, b: f64, size: f64| assert!((a - b).abs() <= 1e-11 * size, "{what}, {id:?}: {a} and {b}");
        near(found.counts[k], expected.counts[position], sizes[0]);
        near(found.entropies[k], expected.entropies[position], sizes[1]);
        for i in 0..p {
            near(found.statistics[k * p + i], expected.statistics[position * p + i], sizes[2]);
        }
    }
}

/// Asserts that gaps of all pairs of components are equal, up to rounding.
fn assert_same_gaps(found: &Summary, units: &RowUnits<'_, f64>, shares: &[Shares]) {
    let size = 1e-11 * (1.0 + units.total_mass());
    for (k, &a) in found.ids.iter().enumerate() {
        for &b in &found.ids[..k] {
            let (found, expected) = (found.gaps.get(a, b).expect("known"), gap(units, shares, &[a], &[b]));
            assert!((found - expected).abs() <= size, "{a:?} and {b:?}: {found} and {expected}");
        }
    }
}

fn interrupt() -> Cancel {
    let cancel = Cancel::default();
    cancel.cancel();
    cancel
}
