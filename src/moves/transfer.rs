//! Gives the rows of a deleted component to the others, if the statistics of a row depend on the component that it is
//! under.
//!
//! The sums of the visits of a pass are over different components, so the contribution of a row to one of them cannot
//! be taken back exactly. It stays, and only the row's responsibility for the deleted component is given to its best
//! other one. What is unseen of the row then has a mixture of two distributions, whose entropy is above the mean of
//! both, so the gain is a lower bound (mathematics 4.11).

use crate::component::{Class, ComponentId, Edit};
use crate::data::Sample;
use crate::error::Result;
use crate::global_step::Globals;
use crate::local_step::{ByScore, Mask, OfShares, pair_gap, units_of};
use crate::moves::refit::{Refit, RowCopies, TURNS};
use crate::moves::row_pairs::{RowPairs, RowShares};
use crate::simd::Scalar;
use crate::suffstats::Summary;

/// What giving away the rows of a component adds to the others.
pub(super) struct Transfer {
    /// The components under which the rows were given away.
    pub globals: Globals,
    /// The sums that this adds.
    pub given: Summary,
    /// The new responsibilities of the rows.
    pub dealt: RowShares,
}

impl<F: Scalar> Refit<'_, F> {
    /// Gives the listed rows to the others.
    ///
    /// # Errors
    /// [`crate::Error::Numerical`].
    pub(super) fn transferred(
        &self,
        total: &Summary,
        gone: ComponentId,
        copies: &[RowCopies],
        lists: &[Vec<usize>],
    ) -> Result<(Summary, Transfer)> {
        let mut rest = total.clone();
        rest.apply(&Edit::Delete { id: gone })?;
        let listed: Vec<(&RowCopies, &[usize])> = copies.iter().zip(lists.iter().map(Vec::as_slice)).collect();
        let mut current = rest.clone();
        let mut transfer = self.given(&Globals::new(self.model, &current, 0), gone, &listed)?;
        for turn in 1..TURNS {
            current = rest.clone();
            current.add(&transfer.given)?;
            transfer = self.given(&Globals::new(self.model, &current, turn as u64), gone, &listed)?;
        }
        rest.add(&transfer.given)?;
        Ok((rest, transfer))
    }

    /// What the listed rows add to the components of `globals`.
    ///
    /// # Errors
    /// [`crate::Error::Numerical`].
    pub(super) fn given(
        &self,
        globals: &Globals,
        gone: ComponentId,
        listed: &[(&RowCopies, &[usize])],
    ) -> Result<Transfer> {
        let mut rows = Sample::default();
        for (piece, list) in listed {
            rows.extend_from(&piece.rows, list);
        }
        let units = units_of(self.model.likelihood.as_ref(), &rows);
        let before = || listed.iter().flat_map(|(piece, list)| list.iter().map(|&row| piece.shares.of(row)));
        let shares: Vec<f64> = before().map(|pairs| share_of(pairs, gone)).collect();
        let classes: Vec<Class> = listed.iter().flat_map(|(piece, list)| piece.classes_of(list)).collect();
        let mut components = self.classes.map(|classes| classes.classes(&globals.ids));
        // A background takes rows too; the components behind the last one do not.
        let has_tail = self.model.background.is_some() && globals.allocation.tail_log_weight.is_some();
        let scorer = if has_tail { globals.scorer(self.model)? } else { globals.scorer_without_tail(self.model)? };
        if let Some(components) = &mut components {
            components.resize(scorer.n_components(), None);
        }
        let deal = ByScore {
            scorer: scorer.as_ref(),
            has_tail,
            width: 1,
            margin: None,
            abandon: true,
            row_terms: false,
            mask: components.as_ref().map(|components| Mask { rows: &classes, components }),
        };
        let mut pairs = RowPairs::default();
        let assign = OfShares { deal, shares: &shares };
        let mut given = self.sum(units.as_ref(), &globals.ids, &assign, Some(&mut pairs))?;
        let mut dealt = RowShares::default();
        for (row, old) in before().enumerate() {
            let (place, share) = (pairs.components[row] as usize, shares[row]);
            let mut kept: Vec<(ComponentId, f64)> = old.filter(|(id, _)| *id != gone).collect();
            let Some(&to) = globals.ids.get(place) else {
                let before = 1.0 - share - kept.iter().map(|(_, value)| value).sum::<f64>();
                if let Some(tail) = &mut given.tail {
                    tail.entropy -= units.mass(row) * pair_gap(before.max(0.0), share);
                }
                dealt.push(kept);
                continue;
            };
            match kept.iter_mut().find(|(id, _)| *id == to) {
                // Two responsibilities for one component have less entropy than two components.
                Some((_, value)) => {
                    given.entropies[place] -= units.mass(row) * pair_gap(*value, share);
                    *value += share;
                }
                None if share > 0.0 => kept.push((to, share)),
                None => {}
            }
            dealt.push(kept);
        }
        Ok(Transfer { globals: globals.clone(), given, dealt })
    }
}

/// The responsibility of a row for a component.
fn share_of(pairs: impl Iterator<Item = (ComponentId, f64)>, wanted: ComponentId) -> f64 {
    pairs.filter(|(id, _)| *id == wanted).map(|(_, value)| value).sum()
}
