//! Rising factorials of a row's counts: what samplers need of one row and many clusters.

use pulp::{Simd, WithSimd};

use crate::likelihood::Eight;
use crate::scoring::Row;
use crate::simd::{Instructions, sum};
use crate::special::{LogProducts, are_normal, ln_gamma_difference};

/// Largest count whose rising factorial is a product. Beyond, differences of log-gamma functions take less time.
const FEW: f64 = 64.0;
/// Number of factors of which a product is taken at once: of factors from 1e-38 to 1e38 it does not overflow.
const AT_ONCE: usize = 8;

/// A family in which a row joins a cluster with the density `prod_v Gamma(a_v + S_v + x_v) / Gamma(a_v + S_v)`, times a
/// function of totals. `S_v` are the sums of the cluster.
pub trait Risings {
    /// `a_v`.
    fn shape(&self, column: usize) -> f64;
    /// Logarithm of the function of totals: of a cluster of `count` rows with the sum `all` over all columns, and of a
    /// row with the sum `own`.
    fn of_totals(&self, count: f64, all: f64, own: f64) -> f64;
    /// What the log marginal of a cluster of `count` rows adds to the sum of `ln Gamma(a + S_v) - ln Gamma(a)`, with
    /// these terms, if the shapes of all columns are equal.
    fn marginals(&self, _count: f64, _all: f64) -> Option<(f64, &LogRisings)> {
        None
    }
}

/// `ln Gamma(a + n) - ln Gamma(a)` of one shape, by n.
#[derive(Debug)]
pub struct LogRisings {
    shape: f64,
    small: Vec<f64>,
}

/// Number of counts whose value is kept.
const KEPT: u32 = 1024;

impl LogRisings {
    /// Those of a shape.
    pub fn new(shape: f64) -> Self {
        let small = (0..KEPT).map(|count| ln_gamma_difference(shape, f64::from(count))).collect();
        Self { shape, small }
    }

    fn of(&self, count: f64) -> f64 {
        match self.small.get(count as usize) {
            Some(&log) if count.fract() == 0.0 => log,
            _ => ln_gamma_difference(self.shape, count.max(0.0)),
        }
    }

    /// The sum over counts: independent parts, so that additions do not wait for each other.
    pub fn sum(&self, counts: impl Iterator<Item = f64>) -> f64 {
        let mut parts = [0.0; 8];
        counts.enumerate().for_each(|(index, count)| parts[index % 8] += self.of(count));
        sum(&parts)
    }
}

/// The counts of a row, by what their rising factorials `Gamma(a + x) / Gamma(a) = a (a + 1) ... (a + x - 1)` take.
#[derive(Debug)]
pub struct Rising {
    /// The factors of small counts.
    factors: Vec<Rise>,
    /// The other counts.
    others: Vec<Rise>,
    /// The sum of all counts.
    pub total: f64,
}

/// The sum of a column is added to it.
#[derive(Debug, Clone, Copy)]
struct Rise {
    column: u32,
    /// The count of the row.
    count: f64,
    /// The shape of the prior, and 0, 1, ... for the factors of one count.
    added: f64,
}

impl Rising {
    /// Sorts the counts of a row.
    pub fn of(family: &dyn Risings, row: Row<'_>) -> Self {
        let mut rising = Self { factors: Vec::new(), others: Vec::new(), total: 0.0 };
        row.each_nonzero(|column, count| {
            let factor = Rise { column: column as u32, count, added: family.shape(column) };
            rising.total += count;
            if count <= FEW && count.fract() == 0.0 && count > 0.0 {
                let each = (0..count as u32).map(|more| Rise { added: factor.added + f64::from(more), ..factor });
                rising.factors.extend(each);
            } else {
                rising.others.push(factor);
            }
        });
        rising
    }

    /// `sum_v ln Gamma(a_v + S_v + x_v) - ln Gamma(a_v + S_v)` for the sums of a cluster.
    pub fn log(&self, sums: &[f64]) -> f64 {
        self.log_of(|factor| sums[factor.column as usize].max(0.0))
    }

    /// The same for the sums of a cluster without this row, which it has. Sums of counts are exact.
    pub fn log_of_member(&self, sums: &[f64]) -> f64 {
        self.log_of(|factor| (sums[factor.column as usize] - factor.count).max(0.0))
    }

    fn log_of(&self, sum: impl Fn(&Rise) -> f64) -> f64 {
        let [log] = self.logs(|factor, _| sum(factor));
        log
    }

    /// The same of several clusters; `sum` is that of a cluster for a factor.
    #[inline(always)]
    fn logs<const N: usize>(&self, sum: impl Fn(&Rise, usize) -> f64) -> [f64; N] {
        let mut products = LogProducts::<N>::default();
        for some in self.factors.chunks(AT_ONCE) {
            let mut at_once = [1.0; N];
            for factor in some {
                for (cluster, product) in at_once.iter_mut().enumerate() {
                    *product *= sum(factor, cluster) + factor.added;
                }
            }
            if are_normal(&at_once) {
                products.multiply(at_once);
            } else {
                for factor in some {
                    products.multiply(std::array::from_fn(|cluster| sum(factor, cluster) + factor.added));
                }
            }
        }
        let mut logs = products.ln();
        for other in &self.others {
            for (cluster, log) in logs.iter_mut().enumerate() {
                *log += ln_gamma_difference(sum(other, cluster) + other.added, other.count);
            }
        }
        logs
    }

    /// Adds the same for each of eight clusters, whose sums stand side by side.
    pub fn add_lanes(&self, sums: &[Eight], out: &mut [f64; 8]) {
        Instructions::widest().run(Lanes { rising: self, sums, out });
    }
}

struct Lanes<'a> {
    rising: &'a Rising,
    sums: &'a [Eight],
    out: &'a mut [f64; 8],
}

impl WithSimd for Lanes<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let logs: [f64; 8] = self.rising.logs(|factor, cluster| self.sums[factor.column as usize].0[cluster].max(0.0));
        self.out.iter_mut().zip(logs).for_each(|(out, log)| *out += log);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Shape(f64);

    impl Risings for Shape {
        fn shape(&self, column: usize) -> f64 {
            self.0 * (1.0 + column as f64)
        }

        fn of_totals(&self, _: f64, _: f64, _: f64) -> f64 {
            0.0
        }
    }

    #[test]
    fn products_are_differences_of_log_gammas() {
        let counts = [1.0, 2.0, 7.0, 31.0, 64.0, 65.0, 1e3, 1e6];
        for shape in [1e-300, 1e-6, 1e-3, 0.1, 1.0, 7.5, 1e6, 1e12, 1e60, 1e300] {
            for n in 1..60 {
                let columns: Vec<u32> = (0..n).collect();
                let values: Vec<f64> = columns.iter().map(|&column| counts[(column * 5 + n) as usize % 8]).collect();
                let sums: Vec<f64> =
                    columns.iter().map(|&column| counts[(column * 3 + n) as usize % 8] - 1.0).collect();
                let of = |(column, (x, sum)): (usize, (&f64, &f64))| {
                    ln_gamma_difference(Shape(shape).shape(column) + sum, *x)
                };
                let expected: f64 = values.iter().zip(&sums).enumerate().map(of).sum();
                let rising = Rising::of(&Shape(shape), Row::Sparse(&columns, &values));
                let near = |found: f64| {
                    assert!((found - expected).abs() <= 1e-13 * (1.0 + expected.abs()), "{shape} {n} {found}");
                };
                near(rising.log(&sums));
                let with: Vec<f64> = sums.iter().zip(&values).map(|(sum, x)| sum + x).collect();
                near(rising.log_of_member(&with));
                let lanes: Vec<Eight> = sums.iter().map(|&sum| Eight([sum; 8])).collect();
                let mut out = [0.0; 8];
                rising.add_lanes(&lanes, &mut out);
                out.into_iter().for_each(near);
            }
        }
    }

    #[test]
    fn kept_logarithms_are_those_of_the_counts() {
        for shape in [1e-6, 0.1, 30.0] {
            let kept = LogRisings::new(shape);
            let counts = [0.0, 1.0, 5.0, 1023.0, 1024.0, 1e6, 0.25, -1e-12, 3.0];
            let expected: f64 = counts.iter().map(|&count: &f64| ln_gamma_difference(shape, count.max(0.0))).sum();
            assert!((kept.sum(counts.into_iter()) / expected - 1.0).abs() < 1e-14);
        }
    }

    #[test]
    fn missing_values_and_zeros_have_no_factors() {
        let dense = Rising::of(&Shape(0.5), Row::Dense(&[0.0, f64::NAN, 3.0, 0.0, 40.0, 70.0]));
        let sparse = Rising::of(&Shape(0.5), Row::Sparse(&[2, 4, 5], &[3.0, 40.0, 70.0]));
        let sums = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        assert_eq!((dense.log(&sums), dense.total), (sparse.log(&sums), sparse.total));
        assert_eq!(Rising::of(&Shape(0.5), Row::Dense(&[0.0, f64::NAN])).log(&sums[..2]), 0.0);
    }
}
