//! Splits: replace a component by two halves (mathematics 4.8).

use crate::error::Result;
use crate::moves::{Move, MoveKind, PartsStart, Planning, Report, Settling, Subsample};
use crate::parameters::Parameters;
use crate::registry::{DefaultValue, Entry, Feature, Parameter, ParameterKind, Support};
use crate::rng::{Choices, Purpose, stream};
use crate::simd::Scalar;

const KIND: MoveKind = MoveKind::new("split");

/// Options of splits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Split {
    /// Number of components tried per pass. The best one is split.
    pub candidates: usize,
}

const CANDIDATES: Parameter = Parameter::new("candidates", ParameterKind::integer_from(1), DefaultValue::Number(10.0));

impl Split {
    /// Entry in the registry.
    pub const ENTRY: Entry =
        Entry { supports: &[Support::always(Feature::Growth)], parameters: &[CANDIDATES], ..Entry::new("Split") };

    /// Builds the move from the parameters of [`Split::ENTRY`].
    ///
    /// # Errors
    /// [`crate::Error::InvalidArgument`] naming the parameter.
    pub fn new(parameters: &Parameters) -> Result<Self> {
        Ok(Self { candidates: parameters.integer(&CANDIDATES)? })
    }
}

impl<F: Scalar> Move<F> for Split {
    fn kind(&self) -> MoveKind {
        KIND
    }

    fn subsample(&self) -> Option<Subsample> {
        Some(Subsample::DEFAULT)
    }

    /// Draws components with probabilities proportional to their counts.
    fn propose(&self, planning: &mut Planning<'_, '_, F>) -> Result<()> {
        let mut ready = planning.ready(&KIND);
        let mut generator = stream(planning.round.seed, Purpose::Targets, planning.pass as u64);
        let mut chosen = Vec::new();
        for _ in 0..self.candidates.min(planning.room(2)).min(ready.len()) {
            let counts: Vec<f64> = ready.iter().map(|&(_, k)| planning.total().counts[k]).collect();
            let (id, k) = ready.remove(generator.choose(&counts));
            let start = planning.state.memory(&KIND).take_next(id).unwrap_or(PartsStart::Bisector);
            chosen.push((id, k, start));
        }
        planning.create(&KIND, &chosen, false)
    }

    fn settle(&self, settling: &mut Settling<'_, '_, F>) -> Result<Report> {
        settling.settle_parts(&KIND, 1)
    }
}
