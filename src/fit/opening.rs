//! When tree nodes are opened, and which of them (mathematics 12.3). Frontiers change only between passes, so
//! everything that is judged at the end of a pass refers to one frontier.

use std::collections::BTreeMap;

use crate::error::Result;
use crate::executor::{Executor, ask};
use crate::fit::engine::Engine;
use crate::fit::position::Position;
use crate::global_step::Globals;
use crate::local_step::{OpeningRule, STANDING};
use crate::rng::{Purpose, key};
use crate::simd::Scalar;
use crate::visits::{FEW_ROWS, JudgeNodes, OpenNodes, TreeSettings};

/// Number of levels that [`OpeningRule::Gain`] opens at a time. It judges nodes by their rows.
/// [`OpeningRule::Responsibility`] judges them by their children, which are one level deep.
const LEVELS: usize = 3;

/// Number of rows of a node to judge before a fit ends. A smaller number could miss a few rows of another cluster.
const LAST_LOOK: usize = 512;

/// Average number of rows that a unit must represent for trees to pay off.
pub(super) const ROWS_A_UNIT: usize = 8;

/// New units are few if they are at most this fraction of all units. They are then no reason to try moves again, or to
/// postpone the passes over rows.
const FEW: f64 = 0.01;

/// What an opening has done.
#[derive(Debug, Clone, Copy, Default)]
struct Opened {
    /// Number of units that it added.
    n_new: usize,
    /// Whether the rule asks for so many nodes that rows would cost less. It then opens none of them.
    is_too_fine: bool,
}

impl<F: Scalar> Engine<'_, F> {
    /// Opens nodes if it is time to, or if nothing else is left to do. Returns whether any node was opened.
    pub(super) fn open_nodes(
        &self,
        executor: &mut dyn Executor,
        position: &mut Position,
        is_settled: bool,
    ) -> Result<bool> {
        let Some(settings) = self.settings.units.tree().filter(|_| !position.tree.is_refined) else {
            return Ok(false);
        };
        // A run that resumes from a checkpoint has already opened nodes before this pass.
        if let Some((_, opened)) = position.tree.last.filter(|(pass, _)| *pass == position.pass) {
            return Ok(opened);
        }
        // Before the first pass the initial components already show which nodes are too coarse for them.
        let max_passes = self.settings.max_passes;
        let is_late = settings.refine && position.pass >= max_passes - max_passes.div_ceil(4);
        if position.pass > 0 && !is_settled && !is_late && position.tree.waited < settings.expand_every {
            return Ok(false);
        }
        let Opened { mut n_new, is_too_fine } =
            if is_late { Opened::default() } else { self.open_by_rule(&settings, executor, position, is_settled)? };
        let n_units = position.history.last().map_or(0, |record| record.n_units);
        let is_few = |n_new: usize| n_new as f64 <= FEW * n_units as f64;
        let is_refined = is_late || is_too_fine || is_settled && is_few(n_new) && settings.refine;
        if is_settled && is_few(n_new) && !is_refined {
            n_new += self.open_for_moves(&settings, executor, position)?.n_new;
        }
        position.tree.rounds += 1;
        position.tree.waited = 0;
        if is_refined {
            ask(executor, OpenNodes::All, None)?;
            position.tree.is_refined = true;
        }
        if is_refined || !is_few(n_new) {
            // A move that did not gain with the nodes may gain with their children.
            position.moves.end_waits();
        }
        let opened = is_refined || n_new > 0;
        position.tree.last = Some((position.pass, opened));
        Ok(opened)
    }

    /// Opens nodes by the rule.
    fn open_by_rule(
        &self,
        settings: &TreeSettings,
        executor: &mut dyn Executor,
        position: &Position,
        is_settled: bool,
    ) -> Result<Opened> {
        let levels = match settings.rule {
            // In nodes that are too coarse several initial components would become one. So all levels may be opened.
            OpeningRule::Gain if position.pass == 0 => usize::MAX,
            OpeningRule::Gain => LEVELS,
            OpeningRule::Responsibility => 1,
        };
        self.open_levels(settings, executor, position, levels, if is_settled { LAST_LOOK } else { STANDING })
    }

    /// Opens all nodes by one level before a fit ends on nodes, if moves could still split a component. All rows in the
    /// nodes of a component that covers two clusters prefer that component, so no rule opens these nodes (Kurihara et
    /// al. 2006 open the nodes of components that they split).
    fn open_for_moves(
        &self,
        settings: &TreeSettings,
        executor: &mut dyn Executor,
        position: &mut Position,
    ) -> Result<Opened> {
        let n_components = position.memo.total().n_components();
        let divides = self.round.as_ref().is_some_and(|round| !round.growing().is_empty());
        // If there are as many components as when nodes were last opened for moves, the moves have found nothing since.
        if !settings.for_moves || !divides || position.tree.looked == Some(n_components) {
            return Ok(Opened::default());
        }
        position.tree.looked = Some(n_components);
        // Every value exceeds this tolerance.
        let all = TreeSettings { tolerance: -1.0, ..*settings };
        self.open_levels(&all, executor, position, 1, STANDING)
    }

    /// Opens nodes whose value is above the tolerance, level by level.
    fn open_levels(
        &self,
        settings: &TreeSettings,
        executor: &mut dyn Executor,
        position: &Position,
        levels: usize,
        n_rows: usize,
    ) -> Result<Opened> {
        let n_batches = executor.n_batches();
        let globals = Globals::new(&self.model, position.memo.total(), (position.pass * n_batches) as u64);
        let seed = key(self.settings.seed, [Purpose::Nodes as u64, position.tree.rounds]);
        let mut opened = Opened::default();
        for level in 0..levels {
            let (rule, tolerance) = (settings.rule, settings.tolerance);
            let question = JudgeNodes { rule, tolerance, seed, n_rows, fresh: level > 0 };
            let mut judged = ask(executor, question, Some(&globals))?;
            let mut room = settings.budget.map_or(usize::MAX, |budget| budget.saturating_sub(judged.n_units));
            // The most valuable nodes first, within the budget.
            judged.candidates.sort_by(|(a, x), (b, y)| {
                (y.value * y.mass).total_cmp(&(x.value * x.mass)).then(a.cmp(b)).then(x.node.cmp(&y.node))
            });
            let mut chosen: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
            for (batch, candidate) in judged.candidates {
                let n_more = candidate.n_more as usize;
                if n_more <= room {
                    room -= n_more;
                    opened.n_new += n_more;
                    judged.n_units += n_more;
                    chosen.entry(batch).or_default().push(candidate.node);
                }
            }
            if chosen.is_empty() {
                break;
            }
            for list in chosen.values_mut() {
                list.sort_unstable();
            }
            let is_free = settings.budget.is_none() && judged.n_rows > FEW_ROWS;
            if is_free && judged.n_units > judged.n_rows / ROWS_A_UNIT {
                opened.is_too_fine = true;
                break;
            }
            ask(executor, OpenNodes::Listed(chosen), None)?;
        }
        Ok(opened)
    }
}
