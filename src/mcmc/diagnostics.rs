//! Effective sample sizes and R-hat of label-invariant quantities (Vehtari, Gelman, Simpson, Carpenter & Buerkner
//! 2021), rank-normalised and computed on split chains.

use crate::special::normal_quantile;

/// Values that differ by less than this part of the largest one are equal: sums in another order have other last bits.
const EQUAL: f64 = 1e-12;

/// The bulk effective sample size of draws of several chains, (chains, draws). NaN for constant or non-finite draws,
/// and for fewer than four draws per chain.
pub fn effective_sample_size(draws: &[f64], chains: usize) -> f64 {
    let halves = halves(&rounded(draws), chains);
    if !are_known(&halves) || are_constant(&halves) {
        return f64::NAN;
    }
    let scaled = rank_normalised(&halves);
    geyer(&scaled)
}

/// R-hat of draws of several chains, (chains, draws): the larger of the values for ranks and for folded ranks. 1 for
/// draws that are all equal, infinite for chains that stay at different values, NaN for non-finite draws and for fewer
/// than four draws per chain.
pub fn split_r_hat(draws: &[f64], chains: usize) -> f64 {
    let halves = halves(&rounded(draws), chains);
    if !are_known(&halves) {
        return f64::NAN;
    }
    if are_constant(&halves) {
        return 1.0;
    }
    if halves.iter().all(|half| are_constant(std::slice::from_ref(half))) {
        return f64::INFINITY;
    }
    let mut sorted: Vec<f64> = halves.concat();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    let median = 0.5 * (sorted[(n - 1) / 2] + sorted[n / 2]);
    let folded: Vec<Vec<f64>> =
        halves.iter().map(|half| half.iter().map(|value| (value - median).abs()).collect()).collect();
    let of_ranks = r_hat(&rank_normalised(&halves));
    if are_constant(&folded) { of_ranks } else { of_ranks.max(r_hat(&rank_normalised(&folded))) }
}

/// The autocorrelations of each chain at the lags from 0 to `max_lag`, (chains, lags), from draws, (chains, draws). NaN
/// for chains of one value, and at lags that a chain does not have.
pub fn autocorrelation(draws: &[f64], chains: usize, max_lag: usize) -> Vec<f64> {
    let length = draws.len() / chains.max(1);
    let of_chain = |chain: &[f64]| {
        let (chain, means) = ([chain.to_vec()], [mean(chain)]);
        let at = |lag: usize| autocovariance(&chain, &means, lag);
        let constant = chain[0].iter().all(|value| *value == chain[0][0]);
        let all = at(0);
        (0..=max_lag).map(|lag| if constant || lag >= length { f64::NAN } else { at(lag) / all }).collect::<Vec<_>>()
    };
    draws.chunks_exact(length.max(1)).flat_map(of_chain).collect()
}

/// The first and the second half of each chain.
fn halves(draws: &[f64], chains: usize) -> Vec<Vec<f64>> {
    let length = draws.len() / chains.max(1);
    let half = length / 2;
    let cut = |chain: &[f64]| [chain[..half].to_vec(), chain[length - half..].to_vec()];
    draws.chunks_exact(length.max(1)).flat_map(cut).collect()
}

/// Whether there are enough draws, all finite.
fn are_known(halves: &[Vec<f64>]) -> bool {
    halves.first().is_some_and(|half| half.len() >= 2) && halves.iter().flatten().all(|value| value.is_finite())
}

fn are_constant(halves: &[Vec<f64>]) -> bool {
    halves.iter().flatten().all(|value| *value == halves[0][0])
}

/// The draws, in which values that differ by rounding only are replaced by one of them.
fn rounded(draws: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..draws.len()).collect();
    order.sort_by(|&a, &b| draws[a].total_cmp(&draws[b]));
    let largest = draws.iter().fold(0.0_f64, |largest, value| largest.max(value.abs()));
    let mut found = draws.to_vec();
    for pair in order.windows(2) {
        if draws[pair[1]] - draws[pair[0]] <= EQUAL * largest {
            found[pair[1]] = found[pair[0]];
        }
    }
    found
}

/// Normal scores of the ranks of all values pooled; tied values share their mean rank.
fn rank_normalised(halves: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let values = halves.concat();
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut scores = vec![0.0; values.len()];
    let mut first = 0;
    while first < order.len() {
        let equal = order[first..].iter().take_while(|&&other| values[other] == values[order[first]]).count();
        let rank = first as f64 + 0.5 * (equal as f64 + 1.0);
        let score = normal_quantile((rank - 0.375) / (values.len() as f64 + 0.25));
        order[first..first + equal].iter().for_each(|&one| scores[one] = score);
        first += equal;
    }
    scores.chunks_exact(halves[0].len()).map(<[f64]>::to_vec).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The variance with the divisor n - 1.
fn variance(values: &[f64]) -> f64 {
    let centre = mean(values);
    values.iter().map(|value| (value - centre).powi(2)).sum::<f64>() / (values.len() as f64 - 1.0)
}

fn r_hat(chains: &[Vec<f64>]) -> f64 {
    let n = chains[0].len() as f64;
    let means: Vec<f64> = chains.iter().map(|chain| mean(chain)).collect();
    let within = chains.iter().map(|chain| variance(chain)).sum::<f64>() / chains.len() as f64;
    let between = n * variance(&means);
    ((between / within + n - 1.0) / n).sqrt()
}

/// The mean over chains of the autocovariance at a lag, with the divisor n.
fn autocovariance(chains: &[Vec<f64>], means: &[f64], lag: usize) -> f64 {
    let of = |(chain, centre): (&Vec<f64>, &f64)| {
        let pairs = chain.iter().zip(&chain[lag..]);
        pairs.map(|(a, b)| (a - centre) * (b - centre)).sum::<f64>() / chain.len() as f64
    };
    chains.iter().zip(means).map(of).sum::<f64>() / chains.len() as f64
}

/// The number of draws divided by the autocorrelation time, from the initial positive monotone sequence (Geyer 1992).
fn geyer(chains: &[Vec<f64>]) -> f64 {
    let n = chains[0].len();
    let means: Vec<f64> = chains.iter().map(|chain| mean(chain)).collect();
    let within = autocovariance(chains, &means, 0) * n as f64 / (n as f64 - 1.0);
    let total = within * (n as f64 - 1.0) / n as f64 + variance(&means);
    let correlation = |lag: usize| 1.0 - (within - autocovariance(chains, &means, lag)) / total;
    // Sums of pairs of correlations while they are positive, each capped by the previous one.
    let (mut even, mut odd) = (1.0, correlation(1));
    let mut pairs = vec![even + odd];
    let mut lag = 1;
    while lag + 3 < n && even + odd > 0.0 {
        (even, odd) = (correlation(lag + 1), correlation(lag + 2));
        if even + odd >= 0.0 {
            pairs.push(even + odd);
        }
        lag += 2;
    }
    // The last pair counts half, through its first member: that of a negative pair only if it is positive.
    let last = if pairs.len() > lag / 2 {
        pairs.pop();
        even
    } else {
        even.max(0.0)
    };
    let mut least = f64::INFINITY;
    let sum: f64 = pairs
        .iter()
        .map(|&pair| {
            least = least.min(pair);
            least
        })
        .sum();
    let draws = (chains.len() * n) as f64;
    let time = -1.0 + 2.0 * sum + last;
    draws / time.max(draws.log10().recip())
}

#[cfg(test)]
mod tests {
    use rand::RngExt;
    use rand_distr::StandardNormal;

    use super::*;
    use crate::rng::{Purpose, stream};

    fn autoregression(coefficient: f64, n: usize, chains: usize) -> Vec<f64> {
        let draw = |chain: usize| {
            let mut generator = stream(21, Purpose::Draws, chain as u64);
            let mut value: f64 = generator.sample(StandardNormal);
            let step = (1.0 - coefficient * coefficient).sqrt();
            let steps = (0..n).map(|_| {
                value = coefficient * value + step * generator.sample::<f64, _>(StandardNormal);
                value
            });
            steps.collect::<Vec<f64>>()
        };
        (0..chains).flat_map(draw).collect()
    }

    /// n (1 - phi) / (1 + phi) for an autoregression. Over many streams the estimate has a relative deviation near
    /// 0.03 at this length.
    #[test]
    fn autoregressions_have_their_sample_size() {
        for coefficient in [0.0, 0.5, 0.9] {
            let draws = autoregression(coefficient, 20_000, 4);
            let expected = 80_000.0 * (1.0 - coefficient) / (1.0 + coefficient);
            let found = effective_sample_size(&draws, 4);
            assert!((found / expected - 1.0).abs() < 0.15, "{coefficient}: {found} {expected}");
            let r_hat = split_r_hat(&draws, 4);
            assert!((1.0 - 1e-3..1.01).contains(&r_hat), "{r_hat}");
        }
    }

    /// The coefficient to the power of the lag, for an autoregression.
    #[test]
    fn autoregressions_have_their_autocorrelations() {
        let found = autocorrelation(&autoregression(0.8, 100_000, 2), 2, 5);
        for (index, value) in found.iter().enumerate() {
            let expected = 0.8_f64.powf((index % 6) as f64);
            assert!((value - expected).abs() < 0.03, "{index}: {value} {expected}");
        }
        let found = autocorrelation(&[1.0, 2.0, 4.0, 5.0, 5.0, 5.0], 2, 3);
        assert_eq!(
            found.iter().map(|value| value.is_nan()).collect::<Vec<_>>(),
            [0, 0, 0, 1, 1, 1, 1, 1].map(|x| x == 1)
        );
        assert!((found[1] + 1.0 / 42.0).abs() < 1e-15 && (found[2] + 20.0 / 42.0).abs() < 1e-15);
    }

    #[test]
    fn chains_apart_are_seen() {
        let mut draws = autoregression(0.0, 100, 2);
        draws[100..].iter_mut().for_each(|value| *value += 3.0);
        assert!(split_r_hat(&draws, 2) > 1.5 && effective_sample_size(&draws, 2) < 10.0);
    }

    #[test]
    fn chains_that_stay_at_one_value_agree_and_at_two_do_not() {
        // Sums in other orders.
        let (one, other) = (0.1 + 0.2 + 0.3, 0.3 + 0.2 + 0.1);
        let draws = [vec![one; 20], vec![other; 20]].concat();
        assert_ne!(one, other);
        for draws in [vec![2.0; 40], vec![0.0; 40], draws] {
            assert!(split_r_hat(&draws, 2) == 1.0 && effective_sample_size(&draws, 2).is_nan());
        }
        let apart = [vec![1.0; 20], vec![2.0; 20]].concat();
        assert_eq!(split_r_hat(&apart, 2), f64::INFINITY);
    }

    #[test]
    fn what_says_nothing_is_nan() {
        for draws in [vec![], vec![1.0, 2.0], vec![f64::NAN; 40]] {
            assert!(effective_sample_size(&draws, 2).is_nan() && split_r_hat(&draws, 2).is_nan());
        }
    }
}
