//! The work of a visit on behalf of moves, besides its local step. It uses only the responsibilities of this visit, so
//! sums over the batches of a pass are exact at its end.

use crate::error::{Error, Result};
use crate::model::Model;
use crate::moves::collect::{KeyLimits, SmallestKeys, collect};
use crate::moves::deal::deal;
use crate::moves::{Findings, Look, Move, Moves, Payloads, Plan, Visited, gaps};
use crate::parallel::try_map;
use crate::scoring::Scorer;
use crate::simd::Scalar;
use crate::suffstats::Summary;

/// The packed parts of every proposal of a plan.
struct Packed<F: Scalar> {
    version: u64,
    scorers: Vec<Box<dyn Scorer<F>>>,
}

/// Finds what plans look for, and caches data between visits.
pub struct Finder<'a, F: Scalar> {
    registered: Moves,
    others: &'a [&'a dyn Move<F>],
    /// For the last plan.
    packed: Option<Packed<F>>,
    /// For the current pass.
    smallest: SmallestKeys,
}

impl<F: Scalar> Default for Finder<'_, F> {
    fn default() -> Self {
        Self { registered: Moves::all(), others: &[], packed: None, smallest: SmallestKeys::default() }
    }
}

impl<'a, F: Scalar> Finder<'a, F> {
    /// Creates a finder that also knows moves outside the registry.
    pub fn with_moves(others: &'a [&'a dyn Move<F>]) -> Self {
        Self { others, ..Self::default() }
    }

    /// Finds what the plan looks for; gaps go into the summary of the visit.
    ///
    /// # Errors
    /// [`Error::Cancelled`]; [`Error::Numerical`]; [`Error::Format`] for a plan with an unknown move.
    pub fn find(&mut self, look: &Look<'_, F>, summary: &mut Summary) -> Result<Findings> {
        let scorers = self.pack(look.model, look.plan)?;
        let places = look.ids.iter().copied().zip(0..).collect();
        let dealt = deal(look, scorers, &places)?;
        let mut visited = Visited { look, places, dealt };
        if !look.plan.pairs.is_empty() {
            summary.gaps = gaps::gaps(&visited)?;
        }
        let bags = collect(&visited, &mut self.smallest);
        let all = self.moves();
        let mut payloads = Payloads::default();
        for (kind, wanted) in &look.plan.wanted.0 {
            let Some(one) = all.iter().find(|one| one.kind() == *kind) else {
                return Err(Error::Format { message: format!("a plan of the unknown move {:?}", kind.name()) });
            };
            payloads.0.extend(one.look(wanted, &visited)?.map(|found| (kind.clone(), found)));
        }
        let parts = std::mem::take(&mut visited.dealt.parts);
        Ok(Findings { parts, bags, payloads })
    }

    /// Sets what the next visit under the plan of this version need not copy, whatever was visited here before.
    pub fn limit_keys(&mut self, version: u64, limits: KeyLimits) {
        self.smallest = SmallestKeys::within(version, limits);
    }

    /// All moves that it knows.
    pub fn moves(&self) -> Vec<&dyn Move<F>> {
        self.registered.list::<F>().into_iter().chain(self.others.iter().copied()).collect()
    }

    fn pack(&mut self, model: &Model<F>, plan: &Plan) -> Result<&[Box<dyn Scorer<F>>]> {
        let n = plan.proposals.len();
        let packed = match self.packed.take() {
            Some(packed) if packed.version == plan.version && packed.scorers.len() == n => packed,
            _ => {
                let scorers = try_map(n, |proposal| {
                    let parts = &plan.proposals[proposal].parts;
                    // The parts may have been made under an earlier base measure.
                    let is_same = parts.base == model.base.parameters;
                    let model_of_parts = if is_same { model } else { &model.with_base(parts.base.clone())? };
                    parts.scorer_without_tail(model_of_parts)
                })?;
                Packed { version: plan.version, scorers }
            }
        };
        Ok(&self.packed.insert(packed).scorers)
    }
}
