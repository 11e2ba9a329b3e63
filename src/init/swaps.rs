//! Swaps that improve seeds: a row replaces a seed if that lowers the sum of divergences from the nearest seed
//! (Lattanzi & Sohler 2019).

use crate::data::RowUnits;
use crate::error::Result;
use crate::init::Seeder;
use crate::init::seeds::Seeds;
use crate::rng::Choices;
use crate::simd::Scalar;

/// Number of trials whose divergences are computed together.
const AT_ONCE: usize = 8;
/// Number of units whose divergences from all seeds are computed together.
const UNITS_AT_ONCE: usize = 4096;

impl<F: Scalar> Seeder<'_, F> {
    /// Tries to replace seeds by rows drawn like seeds. A swap recomputes the divergences of some units, a fraction of
    /// about `2 / K`, from all seeds.
    pub(super) fn swap_seeds(
        &self,
        units: &RowUnits<'_, F>,
        seeds: &mut Seeds,
        n_trials: usize,
        choices: &mut dyn Choices,
    ) -> Result<()> {
        let at_once = AT_ONCE.min(seeds.rows.len());
        for begin in (0..n_trials).step_by(at_once) {
            let potential = seeds.potential();
            if potential.iter().sum::<f64>() <= 0.0 {
                break;
            }
            let n = at_once.min(n_trials - begin);
            let trials: Vec<u32> = (0..n).map(|_| choices.choose(&potential) as u32).collect();
            let all = self.divergences(units, &trials)?;
            for (trial, &row) in trials.iter().enumerate() {
                let distances: Vec<f64> = all.iter().copied().skip(trial).step_by(n).collect();
                let Some(worst) = seeds.worst_beside(&distances) else { continue };
                let open = seeds.replace(worst, row, &distances);
                let centres = self.singles(units, &seeds.rows)?;
                for open in open.chunks(UNITS_AT_ONCE) {
                    let distances = self.divergences_from(&units.select(open), &centres)?;
                    for (&unit, distances) in open.iter().zip(distances.chunks_exact(seeds.rows.len())) {
                        seeds.renew(unit, distances);
                    }
                }
            }
        }
        Ok(())
    }
}
