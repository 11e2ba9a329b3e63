//! Births: replace a component by several fresh parts (mathematics 4.6).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::merge;
use crate::component::position;
use crate::error::Result;
use crate::moves::adoption::{self, Adoption};
use crate::moves::{Move, MoveKind, MoveState, PartsStart, Planning, Report, RunShape, Settling, Subsample};
use crate::parameters::Parameters;
use crate::registry::{DefaultValue, Entry, Feature, Parameter, ParameterKind, Range, Support};
use crate::simd::Scalar;

const KIND: MoveKind = MoveKind::new("birth");

/// Options of births.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Birth {
    /// Whether fresh parts compete with all components for the rows of a pass, as in the paper. Otherwise they only
    /// split the responsibilities for their target.
    pub adopt: bool,
    /// Maximum number of rows from which the parts of a component are made.
    pub max_subsample: usize,
    /// A row is used if its responsibility exceeds this.
    pub threshold: f64,
    /// Maximum number of parts.
    pub fresh: usize,
}

const ADOPTION: Parameter =
    Parameter::new("adoption", ParameterKind::Word(&["split", "pass"]), DefaultValue::Word("split"));
const MAX_SUBSAMPLE: Parameter = Parameter::new(
    "max_subsample",
    ParameterKind::integer_from(4),
    DefaultValue::Number(Subsample::DEFAULT.max_rows as f64),
);
const THRESHOLD: Parameter = Parameter::new(
    "threshold",
    ParameterKind::Number(Range::half_open(0.0, 1.0)),
    DefaultValue::Number(Subsample::DEFAULT.threshold),
);
const FRESH: Parameter = Parameter::new("fresh", ParameterKind::integer_from(2), DefaultValue::Number(10.0));

/// State of births.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct BirthState {
    /// Fresh components that compete in this pass.
    adoption: Option<Adoption>,
    /// Whether the last pass was undone. The next pass then makes no births, so that it makes the usual progress.
    restored: bool,
}

impl Birth {
    /// Entry in the registry.
    pub const ENTRY: Entry = Entry {
        supports: &[Support::always(Feature::Growth)],
        parameters: &[ADOPTION, MAX_SUBSAMPLE, THRESHOLD, FRESH],
        ..Entry::new("Birth")
    };

    /// Builds the move from the parameters of [`Birth::ENTRY`].
    ///
    /// # Errors
    /// [`crate::Error::InvalidArgument`] naming the parameter.
    pub fn new(parameters: &Parameters) -> Result<Self> {
        Ok(Self {
            adopt: parameters.word(&ADOPTION)? == "pass",
            max_subsample: parameters.integer(&MAX_SUBSAMPLE)?,
            threshold: Parameters::required(THRESHOLD.name, parameters.given(&THRESHOLD)?)?,
            fresh: parameters.integer(&FRESH)?,
        })
    }

    /// Merges fresh components that are not needed, and keeps the others if the bound is not lower than before.
    fn settle_adoption<F: Scalar>(adoption: &Adoption, settling: &mut Settling<'_, '_, F>) -> Result<Report> {
        settling.memo.deflate()?;
        settling.fresh = adoption.ids();
        let fresh = &settling.fresh;
        let has_fresh = |(a, b): &&_| fresh.contains(a) || fresh.contains(b);
        let pairs: Vec<_> = settling.state.plan.pairs.iter().filter(has_fresh).copied().collect();
        let merged =
            merge::merge(&settling.judge, settling.memo, settling.edits, &pairs, &BTreeMap::new(), &settling.touched)?;
        settling.owner.extend(merged.accepted.iter().map(|&(keep, gone)| (gone, keep)));
        settling.undone = adoption.restore(&settling.judge, settling.memo, settling.edits)?;
        let (total, state) = (settling.memo.total(), &mut *settling.state);
        let mut accepted = 0;
        for (target, fresh) in &adoption.fresh {
            if !settling.undone && fresh.iter().any(|id| total.ids.contains(id)) {
                accepted += 1;
                state.forget(*target);
            } else if let Ok(place) = position(&total.ids, *target) {
                state.memory(&KIND).failed(*target, total.counts[place], settling.pass, false);
            }
        }
        let gain = match adoption.bound() {
            Some(before) if accepted > 0 => settling.judge.bound(total)? - before,
            _ => 0.0,
        };
        let proposed = adoption.fresh.len();
        let reason = if settling.undone { "the bound fell" } else { "no part was left" };
        settling.touched.extend(settling.owner.values().copied());
        Ok(Report::new(KIND, proposed, accepted, gain, [(reason, proposed - accepted)]))
    }
}

impl<F: Scalar> Move<F> for Birth {
    fn kind(&self) -> MoveKind {
        KIND
    }

    fn subsample(&self) -> Option<Subsample> {
        Some(Subsample { max_rows: self.max_subsample, threshold: self.threshold })
    }

    fn propose(&self, planning: &mut Planning<'_, '_, F>) -> Result<()> {
        let births: &mut BirthState = planning.state.payloads.get_mut(&KIND)?;
        if std::mem::take(&mut births.restored) {
            return Ok(());
        }
        let most = if self.adopt { adoption::MAX_TARGETS } else { usize::MAX };
        let mut chosen = planning.ready(&KIND);
        chosen.truncate(planning.room(self.fresh).min(most));
        let memory = planning.state.memory(&KIND);
        let mut start = |id| memory.take_next(id).unwrap_or(PartsStart::Fresh(self.fresh));
        let chosen: Vec<_> = chosen.into_iter().map(|(id, k)| (id, k, start(id))).collect();
        planning.create(&KIND, &chosen, self.adopt)
    }

    /// Parts either split the responsibilities of their target, or become components at once.
    fn plan(&self, planning: &mut Planning<'_, '_, F>) -> Result<()> {
        if !self.adopt || planning.plan.proposals.iter().all(|proposal| proposal.kind != KIND) {
            return Ok(());
        }
        // Targets of other moves might be merged with fresh components before those moves are judged.
        let mut proposals = std::mem::take(&mut planning.plan.proposals);
        proposals.retain(|proposal| proposal.kind == KIND);
        let max_rows = planning.round.subsample().max_rows;
        let mass = |target| planning.bags[target].smallest(max_rows).rows.masses().iter().sum();
        let masses: Vec<f64> = proposals.iter().map(|proposal| mass(&proposal.target)).collect();
        let adoption = Adoption::begin(&planning.round.model, planning.memo, planning.edits, proposals, &masses)?;
        planning.fresh = adoption.ids();
        planning.state.payloads.get_mut::<BirthState>(&KIND)?.adoption = Some(adoption);
        Ok(())
    }

    fn settle(&self, settling: &mut Settling<'_, '_, F>) -> Result<Report> {
        if !self.adopt {
            return settling.settle_parts(&KIND, usize::MAX);
        }
        let report = match settling.state.payloads.get_mut::<BirthState>(&KIND)?.adoption.take() {
            Some(adoption) => Self::settle_adoption(&adoption, settling)?,
            // No component was eligible, or no split improved the bound.
            None => Report::new(KIND, 0, 0, 0.0, []),
        };
        settling.state.payloads.get_mut::<BirthState>(&KIND)?.restored = settling.undone;
        Ok(settling.state.with_early_refusals(report))
    }

    fn fits(&self, state: &MoveState, shape: &RunShape<'_>) -> bool {
        state.payloads.get::<BirthState>(&KIND).is_ok_and(|births| {
            let adoption = births.as_ref().and_then(|births| births.adoption.as_ref());
            adoption.is_none_or(|adoption| adoption.fits(shape.ids, shape.n_statistics, shape.n_batches))
        })
    }
}
