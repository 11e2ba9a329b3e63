//! The seed tree: every random stream is determined by the seed and a path, never by the order of calls.

use rand::{RngExt, SeedableRng};
use rand_distr::{Gamma, Open01};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The generator of every stream. Named, because the algorithm of a "standard" generator may change.
pub type Generator = Xoshiro256PlusPlus;

/// The purpose of a stream: the first step of its path.
#[derive(Debug, Clone, Copy)]
#[repr(u64)]
pub enum Purpose {
    /// Assignment of rows to batches.
    Batches = 1,
    /// Order of the batches in a pass.
    Visits = 2,
    /// Initialisation.
    Start = 3,
    /// Draws from a fitted model.
    Draws = 4,
    /// Rows of a component that a move uses.
    Collection = 5,
    /// Initialisation of the parts of a component.
    Creation = 6,
    /// Components to split.
    Targets = 7,
    /// The sweeps of a sampler's chain.
    Sweeps = 8,
    /// Order in which trees are grown.
    Trees = 9,
    /// Rows that represent a node.
    Nodes = 10,
    /// Draws of the parameters of components.
    Parameters = 11,
    /// Draws of the weights of components.
    Weights = 12,
    /// Components to rearrange.
    Rearrangements = 13,
    /// Random numbers of single rows in a sweep.
    Rows = 14,
    /// Slices of single rows in a sweep.
    Slices = 15,
    /// Scales of single rows in a sweep.
    Scales = 16,
}

/// The stream of `purpose` and `index` (a pass, a chain) under `seed`.
pub fn stream(seed: u64, purpose: Purpose, index: u64) -> Generator {
    Generator::seed_from_u64(key(seed, [purpose as u64, index]))
}

/// The stream of `purpose` for one component in one draw.
pub fn stream_of_component(seed: u64, purpose: Purpose, draw: u64, component: u64) -> Generator {
    Generator::seed_from_u64(key(seed, [purpose as u64, draw, component]))
}

/// A hash of (seed, path). Keeping the rows with the smallest keys gives a uniform sample that does not depend on
/// visiting order.
pub fn key(seed: u64, path: impl IntoIterator<Item = u64>) -> u64 {
    path.into_iter().fold(seed, |state, step| mix(state ^ mix(step.wrapping_add(0x9e37_79b9_7f4a_7c15))))
}

/// The finaliser of SplitMix64 (Steele, Lea & Flood 2014): neighbouring paths get unrelated streams.
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A uniform number strictly between 0 and 1 for one row, whatever the order in which rows are visited.
pub fn chance(key_of_all: u64, row: u64) -> f64 {
    // The 52 highest bits, centred, so that the result is neither 0 nor 1.
    ((key(key_of_all, [row]) >> 12) as f64 + 0.5) * 2.0_f64.powi(-52)
}

/// A random permutation of `0..n` that depends on the stream and `n` only.
pub fn permutation(n: u32, generator: &mut Generator) -> Vec<u32> {
    let mut order: Vec<u32> = (0..n).collect();
    for i in (1..order.len()).rev() {
        order.swap(i, generator.random_range(0..=i));
    }
    order
}

/// Every discrete random choice of an algorithm goes through this trait, so that a test can enumerate all paths.
pub trait Choices {
    /// Draws an index with probability proportional to `weights` (finite, nonnegative, not all zero).
    fn choose(&mut self, weights: &[f64]) -> usize;

    /// Draws one of `0..n` uniformly; `n` is at least 1.
    fn pick(&mut self, n: usize) -> usize {
        self.choose(&vec![1.0; n])
    }

    /// Shuffles items uniformly.
    fn shuffle(&mut self, items: &mut [u32]) {
        for i in (1..items.len()).rev() {
            let other = self.pick(i + 1);
            items.swap(i, other);
        }
    }

    /// Draws a uniform random subset of `0..n` with `size` members (all if there are fewer), in random order.
    fn subset(&mut self, n: usize, size: usize) -> Vec<u32> {
        let mut items: Vec<u32> = (0..n as u32).collect();
        let size = size.min(n);
        for i in 0..size {
            let other = i + self.pick(n - i);
            items.swap(i, other);
        }
        items.truncate(size);
        items
    }

    /// Whether a proposal is accepted, with probability min(1, exp `log_ratio`); NaN is refused.
    fn accept(&mut self, log_ratio: f64) -> bool {
        if log_ratio >= 0.0 {
            return true;
        }
        let probability = if log_ratio.is_nan() { 0.0 } else { log_ratio.exp() };
        self.choose(&[probability, 1.0 - probability]) == 0
    }
}

impl Choices for Generator {
    fn pick(&mut self, n: usize) -> usize {
        self.random_range(0..n)
    }

    fn choose(&mut self, weights: &[f64]) -> usize {
        let total: f64 = weights.iter().sum();
        let mut left = self.random::<f64>() * total;
        let mut last = 0;
        for (index, &weight) in weights.iter().enumerate() {
            if weight > 0.0 {
                last = index;
                if left < weight {
                    return index;
                }
                left -= weight;
            }
        }
        // Rounding can leave a remainder after the last positive weight.
        last
    }
}

/// Weights prepared for repeated draws.
#[derive(Debug, Clone)]
pub struct Chances {
    /// Cumulative sums of the weights.
    sums: Vec<f64>,
    /// The last index with a positive weight.
    last: usize,
}

impl Chances {
    /// Prepares weights, which are finite, nonnegative and not all zero.
    pub fn new(weights: &[f64]) -> Self {
        let mut sum = 0.0;
        let sums = weights.iter().map(|weight| {
            sum += weight;
            sum
        });
        Self { sums: sums.collect(), last: weights.iter().rposition(|&weight| weight > 0.0).unwrap_or(0) }
    }

    /// Draws an index with probability proportional to its weight.
    pub fn choose(&self, generator: &mut Generator) -> usize {
        let target = generator.random::<f64>() * self.sums[self.last];
        // Rounding can reach the total itself.
        self.sums.partition_point(|&sum| sum <= target).min(self.last)
    }
}

/// Every continuous random draw of a sampler goes through this trait, like its discrete choices.
pub trait Draws: Choices {
    /// Draws a number strictly between 0 and 1.
    fn uniform(&mut self) -> f64;

    /// Returns the log of a draw from Gamma(`shape`, 1), for a positive finite `shape`. The log is finite even if the
    /// draw underflows or overflows.
    ///
    /// # Panics
    /// For any other `shape`.
    fn log_gamma(&mut self, shape: f64) -> f64;

    /// Returns a draw v from Beta(`a`, `b`), and 1 - v without cancellation.
    fn beta(&mut self, a: f64, b: f64) -> (f64, f64) {
        let log_odds = self.log_gamma(a) - self.log_gamma(b);
        ((1.0 + (-log_odds).exp()).recip(), (1.0 + log_odds.exp()).recip())
    }

    /// Fills `out` with a draw from the Dirichlet distribution of these pseudo-counts.
    fn simplex(&mut self, pseudo_counts: &[f64], out: &mut [f64]) {
        for (out, &pseudo_count) in out.iter_mut().zip(pseudo_counts) {
            *out = self.log_gamma(pseudo_count);
        }
        let most = out.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut total = 0.0;
        for value in out.iter_mut() {
            *value = (*value - most).exp();
            total += *value;
        }
        for value in out.iter_mut() {
            *value /= total;
        }
    }
}

impl Draws for Generator {
    fn uniform(&mut self) -> f64 {
        self.sample(Open01)
    }

    fn log_gamma(&mut self, shape: f64) -> f64 {
        // G_a = G_(a + 1) U^(1 / a) for small shapes, whose draws underflow in float64.
        let raised = if shape < 1.0 { shape + 1.0 } else { shape };
        let gamma = Gamma::new(raised, 1.0).expect("the shape is positive and finite");
        let log = self.sample(gamma).ln();
        if shape < 1.0 { log + self.uniform().ln() / shape } else { log }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::special::digamma;

    #[test]
    fn streams_are_reproducible_and_differ() {
        let draw = |seed, purpose, index| stream(seed, purpose, index).random::<u64>();
        assert_eq!(draw(1, Purpose::Start, 0), draw(1, Purpose::Start, 0));
        let others = [draw(2, Purpose::Start, 0), draw(1, Purpose::Visits, 0), draw(1, Purpose::Start, 1)];
        assert!(others.iter().all(|&other| other != draw(1, Purpose::Start, 0)));
    }

    #[test]
    fn a_permutation_holds_every_index_once() {
        let mut order = permutation(1000, &mut stream(7, Purpose::Batches, 0));
        assert_ne!(order, (0..1000).collect::<Vec<_>>());
        order.sort_unstable();
        assert_eq!(order, (0..1000).collect::<Vec<_>>());
    }

    #[test]
    fn choices_follow_their_weights() {
        // 40 000 draws: a frequency deviates from its probability by more than 5 standard errors once in 1.7 million.
        let weights = [0.0, 1.0, 0.0, 3.0, 0.0];
        let chances = Chances::new(&weights);
        let once = |generator: &mut Generator| generator.choose(&weights);
        let again = |generator: &mut Generator| chances.choose(generator);
        for choose in [&once as &dyn Fn(&mut Generator) -> usize, &again] {
            let mut generator = stream(3, Purpose::Start, 0);
            let mut hits = [0.0; 5];
            for _ in 0..40_000 {
                hits[choose(&mut generator)] += 1.0 / 40_000.0;
            }
            assert_eq!(hits[0] + hits[2] + hits[4], 0.0);
            assert!((hits[3] - 0.75_f64).abs() < 5.0 * (0.75_f64 * 0.25 / 40_000.0).sqrt());
        }
    }

    /// 60 000 draws each: a frequency deviates from its probability by more than 5 standard errors once in 1.7 million.
    #[test]
    fn subsets_and_orders_are_uniform() {
        let mut generator = stream(11, Purpose::Sweeps, 0);
        let (mut pairs, mut orders) = (std::collections::BTreeMap::new(), std::collections::BTreeMap::new());
        for _ in 0..60_000 {
            *pairs.entry(generator.subset(4, 2)).or_insert(0) += 1;
            let mut order = [0, 1, 2];
            generator.shuffle(&mut order);
            *orders.entry(order).or_insert(0) += 1;
        }
        assert_eq!((pairs.len(), orders.len()), (12, 6));
        let near =
            |count: i32, n: f64| (f64::from(count) / 6e4 - 1.0 / n).abs() < 5.0 * ((1.0 - 1.0 / n) / n / 6e4).sqrt();
        assert!(pairs.values().all(|&count| near(count, 12.0)) && orders.values().all(|&count| near(count, 6.0)));
        assert_eq!(generator.subset(3, 9).len(), 3);
        assert!(generator.accept(0.0) && !generator.accept(f64::NEG_INFINITY) && !generator.accept(f64::NAN));
    }

    /// 40 000 draws each: the mean deviates from digamma by more than 5 standard errors once in 1.7 million.
    #[test]
    fn gamma_draws_follow_their_law() {
        for (stream_index, shape) in [1e-3, 0.3, 1.0, 7.5, 1e6].into_iter().enumerate() {
            let mut generator = stream(5, Purpose::Draws, stream_index as u64);
            let drawn: Vec<f64> = (0..40_000).map(|_| generator.log_gamma(shape)).collect();
            assert!(drawn.iter().all(|log| log.is_finite()));
            let mean = drawn.iter().sum::<f64>() / 40_000.0;
            let trigamma = (digamma(shape * 1.000_01) - digamma(shape / 1.000_01)) / (shape * 2e-5);
            let error = 5.0 * (trigamma / 40_000.0).sqrt();
            assert!((mean - digamma(shape)).abs() < error, "{shape}: {mean}");
        }
    }

    #[test]
    fn betas_and_simplices_add_up_to_one_whatever_the_pseudo_counts() {
        let mut generator = stream(1, Purpose::Parameters, 0);
        for pseudo_counts in [[1e-300, 1e-3, 1e-300], [1e-3, 2.0, 1e300], [0.5, 40.0, 1.0]] {
            let mut simplex = [0.0; 3];
            generator.simplex(&pseudo_counts, &mut simplex);
            assert!((simplex.iter().sum::<f64>() - 1.0).abs() < 1e-14, "{simplex:?}");
            let (first, rest) = generator.beta(pseudo_counts[0], pseudo_counts[1]);
            assert!(first >= 0.0 && rest >= 0.0 && (first + rest - 1.0).abs() < 1e-14, "{first} {rest}");
        }
    }
}
