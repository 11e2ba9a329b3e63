//! The work of a visit on behalf of moves, besides its local step. It uses only the responsibilities of this visit, so
//! sums over the batches of a pass are exact at its end.

use std::collections::HashMap;

use crate::component::ComponentId;
use crate::error::{Error, Result};
use crate::local_step::Units;
use crate::model::Model;
use crate::moves::bags::SmallestKeys;
use crate::moves::deal::{Dealt, deal};
use crate::moves::{Findings, Move, Moves, Payloads, Plan, Seen, bags, gaps};
use crate::parallel::{Cancel, try_map};
use crate::responsibilities::Sparsity;
use crate::scoring::Scorer;
use crate::simd::Scalar;
use crate::suffstats::Summary;

/// A visit and the plan of what to look for.
pub struct Look<'a, F: Scalar> {
    /// The model.
    pub model: &'a Model<F>,
    /// The plan.
    pub plan: &'a Plan,
    /// Index of the batch.
    pub batch: usize,
    /// Units of the batch.
    pub units: &'a dyn Units<F>,
    /// Responsibilities of the units.
    pub seen: &'a Seen,
    /// The components of the visit, by position.
    pub ids: &'a [ComponentId],
    /// Number of components kept per unit.
    pub sparsity: Sparsity,
    /// Checked between blocks.
    pub cancel: &'a Cancel,
}

/// A visit after the responsibilities for targets have been split between their parts.
pub struct Visited<'a, F: Scalar> {
    /// The visit.
    pub look: &'a Look<'a, F>,
    /// Positions of the components.
    pub places: HashMap<ComponentId, u32>,
    pub(super) dealt: Dealt,
}

impl<F: Scalar> Visited<'_, F> {
    /// The responsibilities of a unit, with targets replaced by their parts. The tail is left out.
    pub fn responsibilities(&self, unit: usize) -> Vec<(ComponentId, f64)> {
        let mut pairs = Vec::new();
        for (component, value) in self.look.seen.pairs(unit) {
            let Some(&id) = self.look.ids.get(component as usize) else { continue };
            match self.dealt.target(component) {
                Some(proposal) => pairs.extend(self.dealt.pairs(self.look.plan, proposal, unit as u32)),
                None => pairs.push((id, value)),
            }
        }
        pairs
    }
}

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
        let bags = bags::collect(&visited, &mut self.smallest);
        let registered = self.registered.list::<F>();
        let mut own = Payloads::default();
        for (kind, wanted) in &look.plan.wanted.0 {
            let mut all = registered.iter().chain(self.others);
            let Some(one) = all.find(|one| one.kind() == *kind) else {
                return Err(Error::Format { message: format!("a plan of the unknown move {:?}", kind.name()) });
            };
            own.0.extend(one.look(wanted, &visited)?.map(|found| (kind.clone(), found)));
        }
        let parts = std::mem::take(&mut visited.dealt.parts);
        Ok(Findings { parts, bags, own })
    }

    fn pack(&mut self, model: &Model<F>, plan: &Plan) -> Result<&[Box<dyn Scorer<F>>]> {
        let n = plan.proposals.len();
        let packed = match self.packed.take() {
            Some(packed) if packed.version == plan.version && packed.scorers.len() == n => packed,
            _ => {
                let scorers = try_map(n, |at| {
                    let parts = &plan.proposals[at].parts;
                    // The parts may have been made under an earlier base measure.
                    let is_same = parts.base == model.base.parameters;
                    let own = if is_same { model } else { &model.with_base(parts.base.clone())? };
                    parts.scorer_without_tail(own)
                })?;
                Packed { version: plan.version, scorers }
            }
        };
        Ok(&self.packed.insert(packed).scorers)
    }
}
