//! How many draws a quantile needs (Raftery & Lewis 1992, "How many iterations in the Gibbs sampler?").

use crate::special::{normal_quantile, quantile};

/// The distance from the law of the chain that burn-in may leave.
const CLOSE: f64 = 0.001;

/// What is to be estimated, and how well.
#[derive(Debug, Clone, Copy)]
pub struct Accuracy {
    /// The probability of the quantile.
    pub quantile: f64,
    /// By how much the probability below the estimated quantile may be off.
    pub precision: f64,
    /// How probable that precision is.
    pub probability: f64,
}

impl Accuracy {
    /// The normal quantile of the probability, divided by the precision, squared.
    fn square(self) -> f64 {
        // The lower tail, because 1 + probability rounds for one close to 1.
        (normal_quantile(0.5 * (1.0 - self.probability)) / self.precision).powi(2)
    }

    /// Number of independent draws that suffice.
    pub fn minimum(self) -> f64 {
        (self.quantile * (1.0 - self.quantile) * self.square()).ceil()
    }
}

/// The length of chain that a quantile needs, in draws.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunLength {
    /// Draws at the beginning that do not count.
    pub burn_in: f64,
    /// Draws that are this far apart are a Markov chain of the first order.
    pub lag: f64,
    /// Draws after burn-in, added up over the chains.
    pub draws: f64,
}

impl RunLength {
    const UNKNOWN: Self = Self { burn_in: f64::NAN, lag: f64::NAN, draws: f64::NAN };

    /// Estimates it from draws of several chains, (chains, draws). Whether a draw is at most the quantile of all draws
    /// is a chain of two states; transitions are counted within each chain. NaN where the draws do not show both
    /// states or their transitions.
    pub fn new(draws: &[f64], chains: usize, wanted: Accuracy) -> Self {
        let length = draws.len() / chains.max(1);
        if length < 3 || draws.iter().any(|draw| !draw.is_finite()) {
            return Self::UNKNOWN;
        }
        let mut sorted = draws.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let limit = quantile(&sorted, wanted.quantile);
        let states: Vec<Vec<bool>> =
            draws.chunks_exact(length).map(|chain| chain.iter().map(|&draw| draw <= limit).collect()).collect();
        let thinned = |lag: usize| -> Vec<Vec<bool>> {
            states.iter().map(|chain| chain.iter().copied().step_by(lag).collect()).collect()
        };
        let Some((lag, thinned)) = (1..length)
            .map(|lag| (lag, thinned(lag)))
            .take_while(|(_, chains)| chains[0].len() >= 3)
            .find(|(_, chains)| {
                let triples = triples(chains);
                let n: f64 = triples.iter().flatten().flatten().sum();
                // Bayes' criterion prefers the first order to the second, which has two parameters more.
                dependence(&triples) < 2.0 * n.ln()
            })
        else {
            return Self::UNKNOWN;
        };
        let mut moves = [[0.0; 2]; 2];
        thinned.iter().flat_map(|chain| chain.windows(2)).for_each(|pair| {
            moves[usize::from(pair[0])][usize::from(pair[1])] += 1.0;
        });
        let [alpha, beta] = [moves[0][1] / (moves[0][0] + moves[0][1]), moves[1][0] / (moves[1][0] + moves[1][1])];
        let sum = alpha + beta;
        let burn_in = (CLOSE * sum / alpha.max(beta)).ln() / (1.0 - sum).abs().ln();
        let draws = (2.0 - sum) * alpha * beta * wanted.square() / sum.powi(3);
        // Burn-in is infinite for states that alternate, and 0 for states that do not depend on those before them.
        if !(alpha > 0.0 && beta > 0.0 && burn_in.is_finite()) {
            return Self::UNKNOWN;
        }
        Self { burn_in: burn_in.max(0.0).ceil() * lag as f64, lag: lag as f64, draws: draws.ceil() * lag as f64 }
    }
}

/// Numbers of triples of successive states.
fn triples(chains: &[Vec<bool>]) -> [[[f64; 2]; 2]; 2] {
    let mut counts = [[[0.0; 2]; 2]; 2];
    chains.iter().flat_map(|chain| chain.windows(3)).for_each(|triple| {
        let [a, b, c] = [triple[0], triple[1], triple[2]].map(usize::from);
        counts[a][b][c] += 1.0;
    });
    counts
}

/// Twice the log ratio of the likelihoods of a Markov chain of the second order and of one of the first.
fn dependence(triples: &[[[f64; 2]; 2]; 2]) -> f64 {
    let cell = |(a, b, c): (usize, usize, usize)| {
        let count = triples[a][b][c];
        if count == 0.0 {
            return 0.0;
        }
        let middle: f64 = triples.iter().map(|of| of[b].iter().sum::<f64>()).sum();
        let first = triples[a][b].iter().sum::<f64>();
        let last = triples[0][b][c] + triples[1][b][c];
        2.0 * count * (count * middle / (first * last)).ln()
    };
    (0..8).map(|index| cell((index >> 2, index >> 1 & 1, index & 1))).sum()
}

#[cfg(test)]
mod tests {
    use rand::RngExt;

    use super::*;
    use crate::rng::{Purpose, stream};

    const USUAL: Accuracy = Accuracy { quantile: 0.025, precision: 0.005, probability: 0.95 };

    /// The authors' number for the usual settings.
    #[test]
    fn independent_draws_that_suffice() {
        assert_eq!(USUAL.minimum().to_bits(), 3746.0_f64.to_bits());
        let wanted = Accuracy { quantile: 0.5, precision: 0.0125, ..USUAL };
        assert_eq!(wanted.minimum().to_bits(), 6147.0_f64.to_bits());
    }

    /// A chain of two states needs what the formula says of its probabilities; one that keeps each state twice needs
    /// twice that.
    #[test]
    fn chains_of_two_states_need_what_the_formula_says() {
        let (alpha, beta) = (0.02, 0.3);
        let wanted = Accuracy { quantile: alpha / (alpha + beta), ..USUAL };
        let mut generator = stream(5, Purpose::Draws, 0);
        let mut low = false;
        let mut chain = |n: usize| -> Vec<f64> {
            (0..n)
                .map(|_| {
                    low = if generator.random_bool(if low { beta } else { alpha }) { !low } else { low };
                    // Lower numbers are in the state at most the quantile.
                    if low { 0.0 } else { 1.0 + generator.random::<f64>() }
                })
                .collect()
        };
        let sum: f64 = alpha + beta;
        let expected = (2.0 - sum) * alpha * beta * wanted.square() / sum.powi(3);
        let draws = [chain(200_000), chain(200_000)].concat();
        let found = RunLength::new(&draws, 2, wanted);
        assert!((found.draws / expected - 1.0).abs() < 0.05, "{} {expected}", found.draws);
        assert_eq!(found.lag.to_bits(), 1.0_f64.to_bits());
        let burn_in = (CLOSE * sum / beta).ln() / (1.0 - sum).ln();
        assert!((found.burn_in - burn_in).abs() < 3.0, "{} {burn_in}", found.burn_in);
        let twice: Vec<f64> = draws.iter().flat_map(|&draw| [draw, draw]).collect();
        let slower = RunLength::new(&twice, 2, wanted);
        assert!(slower.lag >= 2.0 && (slower.draws / found.draws - 2.0).abs() < 0.4, "{slower:?} {found:?}");
    }

    #[test]
    fn what_says_nothing_is_nan() {
        for draws in [vec![], vec![1.0], vec![2.0; 40], vec![f64::NAN; 40], vec![1.0, 2.0, 3.0]] {
            let found = RunLength::new(&draws, 1, USUAL);
            assert!(found.draws.is_nan() && found.lag.is_nan() && found.burn_in.is_nan(), "{draws:?} {found:?}");
        }
    }
}
