//! The change of the bound of sticks by a merge, in closed form (mathematics 4.5).

use crate::special::ln_gamma_difference;

/// Largest product of ratios whose logarithm is not taken yet.
const LARGEST_PRODUCT: f64 = 1e300;

/// Sticks v_k ~ Beta(1 - discount, concentration + k discount), k = 1, 2, ..., none of which is fixed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FreeSticks {
    /// The discount, 0 for a Dirichlet process.
    pub discount: f64,
    /// The concentration.
    pub concentration: f64,
}

impl FreeSticks {
    /// The change of L* if components `a` and `b` become one (mathematics 4.5). `counts` fall, `a < b`, and `from` has
    /// N_{>=k} for every k, including the tail. The cost is that of a few operations for each component between the
    /// smaller one and the union.
    pub fn change_by_merge(self, counts: &[f64], from: &[f64], a: usize, b: usize) -> f64 {
        let Self { discount, concentration } = self;
        let both = counts[a] + counts[b];
        let place = counts[..a].partition_point(|&count| count >= both);
        let prior = |k: usize| concentration + k as f64 * discount;
        // Without a discount the factors behind `b` cancel, except for one.
        let last = if discount > 0.0 { counts.len() - 1 } else { b };
        let left = (place + 1..=a)
            .map(|k| (k, from[k - 1] - both))
            .chain((a + 1..b).map(|k| (k, from[k] - counts[b])))
            .chain((b..last).map(|k| (k, from[k + 1])));
        let ratios = left.map(|(k, left)| (prior(k) + from[k]) / (prior(k) + left.max(0.0)));
        let first = 1.0 - discount;
        ln_gamma_difference(first + counts[a], counts[b]) - ln_gamma_difference(first, counts[b])
            + ln_of_product(ratios)
            + (prior(last) + from[last]).ln()
            - prior(last).ln()
    }
}

fn ln_of_product(factors: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut product) = (0.0, 1.0);
    for factor in factors {
        let next = product * factor;
        if next > LARGEST_PRODUCT {
            sum += f64::ln(product);
            product = factor;
        } else {
            product = next;
        }
    }
    sum + product.ln()
}
