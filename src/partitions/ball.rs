//! Credible balls around a partition (Wade & Ghahramani 2018).

use crate::error::{Error, Result};
use crate::parallel::{Cancel, try_map};
use crate::partitions::{Contingency, Loss};

/// Differences of distances that are rounding, relative and absolute.
const ROUNDING: f64 = 1e-12;

/// The loss of labels where each draw is true, from labels, (T, n).
///
/// # Errors
/// [`Error::Format`] for labels that are not those of the rows; [`Error::Cancelled`].
pub fn distances(draws: &[i32], labels: &[u32], loss: Loss, cancel: &Cancel) -> Result<Vec<f64>> {
    let n = labels.len();
    let foreign = || Error::Format { message: "labels that are not those of draws".to_owned() };
    if n == 0 || !draws.len().is_multiple_of(n) {
        return Err(foreign());
    }
    try_map(draws.len() / n, |draw| {
        cancel.check()?;
        let number = |&label: &i32| u32::try_from(label).map_err(|_| foreign());
        let draw = draws[draw * n..][..n].iter().map(number).collect::<Result<Vec<_>>>()?;
        Ok(Contingency::new(labels, &draw).loss(loss))
    })
}

/// The smallest ball around a partition that holds a share of the draws, and draws at its edge. A draw is named by its
/// index.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CredibleBall {
    /// The largest distance within the ball.
    pub radius: f64,
    /// Of the draws with the fewest clusters, the first one of those farthest away.
    pub upper: usize,
    /// Of the draws with the most clusters, the first one of those farthest away.
    pub lower: usize,
    /// Of all draws in the ball, the first one of those farthest away.
    pub horizontal: usize,
}

impl CredibleBall {
    /// The ball with at least this share of the draws, at least one, given their distances from its centre and their
    /// numbers of clusters.
    pub fn new(distances: &[f64], n_clusters: &[i64], level: f64) -> Self {
        let mut sorted = distances.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let within = ((level * distances.len() as f64).ceil() as usize).clamp(1, distances.len());
        let radius = sorted[within - 1];
        // Equal distances may differ by rounding.
        let limit = radius + ROUNDING * (1.0 + radius);
        let inside: Vec<usize> = (0..distances.len()).filter(|&draw| distances[draw] <= limit).collect();
        let farthest = |first: &dyn Fn(usize) -> i64| {
            inside.iter().copied().reduce(|best, draw| {
                let order = first(best).cmp(&first(draw)).then(distances[best].total_cmp(&distances[draw]));
                if order.is_lt() { draw } else { best }
            })
        };
        let [upper, lower, horizontal] =
            [farthest(&|draw| -n_clusters[draw]), farthest(&|draw| n_clusters[draw]), farthest(&|_| 0)]
                .map(Option::unwrap_or_default);
        Self { radius, upper, lower, horizontal }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_edge_is_that_of_the_smallest_ball() {
        let (distances, n_clusters) = ([0.0, 0.3, 0.3, 0.2, 0.9, 0.1], [3, 2, 4, 4, 1, 2]);
        let ball = |level| CredibleBall::new(&distances, &n_clusters, level);
        assert_eq!(ball(0.8), CredibleBall { radius: 0.3, upper: 1, lower: 2, horizontal: 1 });
        assert_eq!(ball(0.5), CredibleBall { radius: 0.2, upper: 5, lower: 3, horizontal: 3 });
        assert_eq!(ball(1e-9), CredibleBall { radius: 0.0, upper: 0, lower: 0, horizontal: 0 });
        assert_eq!(ball(1.0), CredibleBall { radius: 0.9, upper: 4, lower: 2, horizontal: 4 });
    }

    #[test]
    fn distances_are_losses() {
        let draws = [0, 0, 1, 1, 0, 1, 1, 1];
        let found = distances(&draws, &[5, 5, 2, 2], Loss::Binder, &Cancel::default()).expect("two draws");
        assert_eq!(found, [0.0, 3.0]);
        assert!(distances(&[0, -1, 0, 0], &[0, 0], Loss::Binder, &Cancel::default()).is_err());
    }
}
