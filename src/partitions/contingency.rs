//! How far two labellings of the same rows differ.

use std::collections::HashMap;

use crate::partitions::Loss;

/// The numbers of rows by label of one and of the other labelling, without empty cells. Labels may be any numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Contingency {
    /// Number of rows.
    n: f64,
    /// Rows of each pair of labels.
    cells: Vec<f64>,
    /// Rows of each label of one, and of the other.
    margins: [Vec<f64>; 2],
}

/// Numbers the labels by first appearance, and returns the number of rows of each.
fn numbered(labels: &[u32]) -> (Vec<u64>, Vec<f64>) {
    let (mut numbers, mut sizes) = (HashMap::new(), Vec::new());
    let number = |label: &u32| {
        let number = *numbers.entry(*label).or_insert(sizes.len());
        if number == sizes.len() {
            sizes.push(0.0);
        }
        sizes[number] += 1.0;
        number as u64
    };
    let numbered = labels.iter().map(number).collect();
    (numbered, sizes)
}

impl Contingency {
    /// Counts two labellings of equal length.
    pub fn new(one: &[u32], other: &[u32]) -> Self {
        let ((one, of_one), (other, of_other)) = (numbered(one), numbered(other));
        let mut keys: Vec<u64> = one.iter().zip(&other).map(|(a, b)| a * of_other.len() as u64 + b).collect();
        // Sorted, so that sums do not depend on the order of a hash table.
        keys.sort_unstable();
        let cells = keys.chunk_by(|a, b| a == b).map(|cell| cell.len() as f64).collect();
        Self { n: one.len() as f64, cells, margins: [of_one, of_other] }
    }

    /// Sums of the weights of a loss over the cells, over the labels of one, and over those of the other.
    fn sums(&self, loss: Loss) -> (f64, [f64; 2]) {
        let sum = |counts: &[f64]| counts.iter().map(|&count| loss.weight(count)).sum::<f64>();
        (sum(&self.cells), [sum(&self.margins[0]), sum(&self.margins[1])])
    }

    /// The loss of one labelling where the other is true.
    pub fn loss(&self, loss: Loss) -> f64 {
        let (both, [of_one, of_other]) = self.sums(loss);
        ((of_one + of_other - 2.0 * both) / loss.unit(self.n)).max(0.0)
    }

    /// The adjusted Rand index (Hubert & Arabie 1985): 1 if they are the same, 0 on average if they have nothing to do
    /// with each other.
    pub fn adjusted_rand(&self) -> f64 {
        // Binder's weights count pairs of rows.
        let (both, [of_one, of_other]) = self.sums(Loss::Binder);
        let expected = of_one * of_other / Loss::Binder.weight(self.n).max(1.0);
        let most = f64::midpoint(of_one, of_other);
        // Only two labellings of one cluster, or of single rows, leave nothing to adjust.
        if most == expected { 1.0 } else { (both - expected) / (most - expected) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_values() {
        let ari = |one: &[u32], other: &[u32]| Contingency::new(one, other).adjusted_rand();
        // The example of scikit-learn's manual, and the same labels under other names.
        assert!((ari(&[0, 0, 1, 1], &[0, 0, 1, 2]) - 4.0 / 7.0).abs() < 1e-15);
        assert_eq!(ari(&[0, 0, 1, 2], &[2, 2, 0, 1]).to_bits(), 1.0_f64.to_bits());
        assert!((ari(&[0, 0, 1, 1], &[0, 1, 0, 1]) + 0.5).abs() < 1e-15);
        assert_eq!(ari(&[0, 0, 0], &[0, 0, 0]).to_bits(), 1.0_f64.to_bits());
        let crossed = Contingency::new(&[0, 0, 9, 9], &[7, 3, 7, 3]);
        assert!((crossed.loss(Loss::Variation) - 2.0 * 2.0_f64.ln()).abs() < 1e-15);
        assert_eq!(crossed.loss(Loss::Binder).to_bits(), 4.0_f64.to_bits());
        let singles = Contingency::new(&[0, 1, 2, 3, 4], &[0; 5]);
        assert!((singles.loss(Loss::Variation) - 5.0_f64.ln()).abs() < 1e-15);
    }

    fn labels() -> impl Strategy<Value = (Vec<u32>, Vec<u32>, Vec<u32>)> {
        let row = (0_u32..4, 0_u32..5, 0_u32..3);
        prop::collection::vec(row, 1..30).prop_map(|rows| {
            let of = |get: fn(&(u32, u32, u32)) -> u32| rows.iter().map(get).collect();
            (of(|row| row.0), of(|row| row.1), of(|row| row.2))
        })
    }

    proptest! {
        /// Both losses are metrics, and no value depends on the names of labels.
        #[test]
        fn losses_are_metrics((a, b, c) in labels()) {
            let renamed: Vec<u32> = a.iter().map(|label| 17 - 3 * label).collect();
            let (same, other) = (Contingency::new(&a, &renamed), Contingency::new(&renamed, &b));
            prop_assert!(same.loss(Loss::Variation) < 1e-14 && same.loss(Loss::Binder) == 0.0);
            prop_assert_eq!(same.adjusted_rand(), 1.0);
            let plain = Contingency::new(&a, &b);
            prop_assert_eq!(plain.adjusted_rand(), other.adjusted_rand());
            for loss in [Loss::Variation, Loss::Binder] {
                let of = |one: &[u32], other: &[u32]| Contingency::new(one, other).loss(loss);
                prop_assert!((of(&a, &b) - of(&b, &a)).abs() < 1e-12);
                prop_assert!((other.loss(loss) - of(&a, &b)).abs() < 1e-12);
                prop_assert!(of(&a, &c) <= of(&a, &b) + of(&b, &c) + 1e-12);
            }
        }

        /// Binder's loss counts pairs.
        #[test]
        fn binder_counts_pairs((a, b, _) in labels()) {
            let differ = |i: usize, j: usize| u32::from((a[i] == a[j]) != (b[i] == b[j]));
            let count: u32 = (0..a.len()).flat_map(|j| (0..j).map(move |i| differ(i, j))).sum();
            prop_assert_eq!(Contingency::new(&a, &b).loss(Loss::Binder), f64::from(count));
        }
    }
}
