//! Seeds, and swaps that improve them: a row replaces a seed if that lowers the sum of divergences from the nearest
//! seed (Lattanzi & Sohler 2019).

use crate::data::RowUnits;
use crate::error::Result;
use crate::init::Seeder;
use crate::rng::Choices;
use crate::simd::Scalar;

/// Number of trials whose divergences are computed together.
const AT_ONCE: usize = 8;
/// Number of units whose divergences from all seeds are computed together.
const UNITS_AT_ONCE: usize = 4096;

/// A seed and its divergence from a unit.
#[derive(Debug, Clone, Copy)]
struct Near {
    seed: usize,
    distance: f64,
}

const NONE: Near = Near { seed: usize::MAX, distance: f64::INFINITY };

/// The two nearest seeds of a unit.
#[derive(Debug, Clone, Copy)]
struct TwoNearest(Near, Near);

impl TwoNearest {
    fn offer(&mut self, seed: usize, distance: f64) {
        let offered = Near { seed, distance };
        if distance < self.0.distance {
            *self = Self(offered, self.0);
        } else if distance < self.1.distance {
            self.1 = offered;
        }
    }
}

/// The seed rows, and the two nearest seeds of every unit.
#[derive(Debug)]
pub(super) struct Seeds {
    /// The rows.
    pub rows: Vec<u32>,
    masses: Vec<f64>,
    nearest: Vec<TwoNearest>,
}

impl Seeds {
    /// Starts without seeds, among units with these masses.
    pub fn of(masses: Vec<f64>) -> Self {
        Self { rows: Vec::new(), nearest: vec![TwoNearest(NONE, NONE); masses.len()], masses }
    }

    /// Adds a seed, given its divergence from every unit.
    pub fn push(&mut self, row: u32, distances: impl Iterator<Item = f64>) {
        let seed = self.rows.len();
        self.nearest.iter_mut().zip(distances).for_each(|(pair, distance)| pair.offer(seed, distance));
        self.rows.push(row);
    }

    /// Divergence of every unit from its nearest seed.
    pub fn distances(&self) -> impl Iterator<Item = f64> {
        self.nearest.iter().map(|pair| pair.0.distance)
    }

    /// Divergence of every unit from its nearest seed, multiplied by the masses.
    pub fn potential(&self) -> Vec<f64> {
        self.masses.iter().zip(self.distances()).map(|(mass, distance)| mass * distance).collect()
    }

    /// The seed that is best replaced by a row at these distances; ties go to the first. `None` if no swap lowers the
    /// sum.
    fn worst_beside(&self, distances: &[f64]) -> Option<usize> {
        let (mut change, mut losses) = (0.0, vec![0.0; self.rows.len()]);
        for ((TwoNearest(first, second), &distance), mass) in self.nearest.iter().zip(distances).zip(&self.masses) {
            let nearest = first.distance.min(distance);
            change += mass * (nearest - first.distance);
            losses[first.seed] += mass * (second.distance.min(distance) - nearest);
        }
        let (worst, loss) =
            losses.into_iter().enumerate().reduce(|best, other| if other.1 < best.1 { other } else { best })?;
        (loss + change < 0.0).then_some(worst)
    }

    /// Replaces a seed by a row. Returns the units that have lost one of their two nearest seeds.
    fn replace(&mut self, seed: usize, row: u32, distances: &[f64]) -> Vec<u32> {
        self.rows[seed] = row;
        let mut open = Vec::new();
        for ((unit, pair), &distance) in (0..).zip(&mut self.nearest).zip(distances) {
            if pair.0.seed == seed || pair.1.seed == seed {
                open.push(unit);
            } else {
                pair.offer(seed, distance);
            }
        }
        open
    }

    /// Recomputes the two nearest seeds of a unit.
    fn renew(&mut self, unit: u32, distances: &[f64]) {
        let mut pair = TwoNearest(NONE, NONE);
        for (seed, (&distance, &row)) in distances.iter().zip(&self.rows).enumerate() {
            pair.offer(seed, if row == unit { 0.0 } else { distance });
        }
        self.nearest[unit as usize] = pair;
    }
}

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
