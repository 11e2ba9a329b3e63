//! Seeds, and the two nearest seeds of every unit.

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
        let near = Near { seed, distance };
        if distance < self.0.distance {
            *self = Self(near, self.0);
        } else if distance < self.1.distance {
            self.1 = near;
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

    /// The same, multiplied by the masses.
    pub fn potential(&self) -> Vec<f64> {
        self.masses.iter().zip(self.distances()).map(|(mass, distance)| mass * distance).collect()
    }

    /// The seed that is best replaced by a row at these distances; ties go to the first. `None` if no swap lowers the
    /// sum.
    pub fn worst_beside(&self, distances: &[f64]) -> Option<usize> {
        let (mut change, mut losses) = (0.0, vec![0.0; self.rows.len()]);
        for ((TwoNearest(first, second), &distance), mass) in self.nearest.iter().zip(distances).zip(&self.masses) {
            let least = first.distance.min(distance);
            change += mass * (least - first.distance);
            // A row without finite distances, which another thread has changed, has no nearest seed.
            if let Some(loss) = losses.get_mut(first.seed) {
                *loss += mass * (second.distance.min(distance) - least);
            }
        }
        let (worst, loss) =
            losses.into_iter().enumerate().reduce(|best, other| if other.1 < best.1 { other } else { best })?;
        (loss + change < 0.0).then_some(worst)
    }

    /// Replaces a seed by a row. Returns the units that have lost one of their two nearest seeds.
    pub fn replace(&mut self, seed: usize, row: u32, distances: &[f64]) -> Vec<u32> {
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
    pub fn renew(&mut self, unit: u32, distances: &[f64]) {
        let mut pair = TwoNearest(NONE, NONE);
        for (seed, (&distance, &row)) in distances.iter().zip(&self.rows).enumerate() {
            pair.offer(seed, if row == unit { 0.0 } else { distance });
        }
        self.nearest[unit as usize] = pair;
    }
}
