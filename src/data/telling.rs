//! The columns that tell rows apart.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::hash::mixed;

/// A column nearly follows from another one if this share of the rows has the commonest of its values beside a value of
/// that one, and if this part of the rows that have not the commonest value of all is left at most.
const NEARLY: f64 = 0.95;
const EXPLAINED: f64 = 0.25;
/// It must have at least this many rows a value: copies of a row agree in all columns, too.
const ROWS_PER_VALUE: f64 = 4.0;
/// With more columns, rows hardly meet by chance, and pairs of columns are not compared.
const WIDE: usize = 32;

/// Values are a smooth function of their order if neighbours differ by at most this part of what they do in any order.
const SMOOTH: f64 = 0.2;
/// At most this part of the inner values are turning points; in any order two of three are.
const TURNING: f64 = 0.25;
/// Fewer values may be in such an order by chance.
const LEAST_SMOOTH: usize = 20;

/// Whether values in order are those of a smooth function, by the ratio of von Neumann (1941), which is small for
/// values of clusters, too, and by the number of turning points (Bienaymé 1874).
pub fn are_smooth(values: &[f64]) -> bool {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let apart: f64 = values.windows(2).map(|pair| (pair[1] - pair[0]).powi(2)).sum();
    let spread: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let turns = |three: &&[f64]| (three[1] - three[0]) * (three[2] - three[1]) < 0.0;
    let n_turning = values.windows(3).filter(turns).count() as f64;
    let n = values.len();
    n >= LEAST_SMOOTH && apart <= 2.0 * SMOOTH * spread && n_turning <= TURNING * (n - 2) as f64
}

/// The columns that each tell all rows apart, those together of which one is a smooth function of the other one.
pub(super) fn orders(n: usize, columns: &[Vec<u32>]) -> Vec<Vec<usize>> {
    let mut orders: Vec<Vec<usize>> = Vec::new();
    let tells_all = |column: &Vec<u32>| column.iter().max().is_some_and(|&most| most as usize + 1 == n);
    for (column, places) in columns.iter().enumerate().filter(|(_, places)| tells_all(places)) {
        let is_same = |order: &&mut Vec<usize>| {
            let other = &columns[order[0]];
            let pairs = || other.iter().zip(places);
            let is_function = |of: &[u32], by: &[u32]| {
                let mut values = vec![0.0; n];
                of.iter().zip(by).for_each(|(&value, &place)| values[place as usize] = f64::from(value));
                are_smooth(&values)
            };
            pairs().all(|(a, b)| a == b)
                || pairs().all(|(a, b)| (a + b) as usize + 1 == n)
                || is_function(places, other)
                || is_function(other, places)
        };
        match orders.iter_mut().find(is_same) {
            Some(order) => order.push(column),
            None => orders.push(vec![column]),
        }
    }
    orders
}

/// The columns that are left when those are left out, one after the other, without which all rows still differ:
/// constant columns, copies, and columns that follow from others. Then those that nearly follow from another one, such
/// as a copy with some errors. Those with the most values go first, such as the product of two others.
pub(super) fn telling(n: usize, columns: &[Vec<u32>], multiplicities: &[f64]) -> Vec<usize> {
    let n_values = |column: &Vec<u32>| column.iter().max().copied();
    let mut order: Vec<usize> = (0..columns.len()).collect();
    order.sort_by_key(|&column| Reverse(n_values(&columns[column])));
    let part = |column: usize, row: usize| mixed((column as u64) << 32 | u64::from(columns[column][row]));
    let mut hashes: Vec<u64> =
        (0..n).map(|row| (0..columns.len()).fold(0_u64, |sum, column| sum.wrapping_add(part(column, row)))).collect();
    let mut kept = vec![true; columns.len()];
    for &column in &order {
        if kept.iter().filter(|kept| **kept).count() == 1 {
            break;
        }
        let without: Vec<u64> = (0..n).map(|row| hashes[row].wrapping_sub(part(column, row))).collect();
        let mut sorted = without.clone();
        sorted.sort_unstable();
        sorted.dedup();
        if sorted.len() == n {
            (hashes, kept[column]) = (without, false);
        }
    }
    let is_wide = kept.iter().filter(|kept| **kept).count() > WIDE;
    for &column in order.iter().filter(|_| !is_wide) {
        let others: Vec<usize> = (0..columns.len()).filter(|&other| other != column && kept[other]).collect();
        if kept[column] && others.iter().any(|&other| nearly_follows(&columns[column], &columns[other], multiplicities))
        {
            kept[column] = false;
        }
    }
    (0..columns.len()).filter(|&column| kept[column]).collect()
}

/// Whether nearly all rows have the commonest value of a column beside their value of another one, whose values have
/// many rows.
fn nearly_follows(column: &[u32], other: &[u32], multiplicities: &[f64]) -> bool {
    let mut masses: BTreeMap<(u32, u32), f64> = BTreeMap::new();
    let mut alone: BTreeMap<u32, f64> = BTreeMap::new();
    for ((&place, &beside), m) in column.iter().zip(other).zip(multiplicities) {
        *masses.entry((beside, place)).or_default() += m;
        *alone.entry(place).or_default() += m;
    }
    let mut commonest: BTreeMap<u32, f64> = BTreeMap::new();
    for ((beside, _), mass) in masses {
        let most = commonest.entry(beside).or_default();
        *most = most.max(mass);
    }
    let all: f64 = multiplicities.iter().sum();
    let unexplained = all - commonest.values().sum::<f64>();
    let of_itself = all - alone.into_values().fold(0.0, f64::max);
    all >= ROWS_PER_VALUE * commonest.len() as f64
        && unexplained <= (1.0 - NEARLY) * all
        && unexplained <= EXPLAINED * of_itself
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_in_one_order_are_one() {
        let columns = [vec![0, 2, 1], vec![2, 0, 1], vec![1, 0, 2], vec![0, 0, 1]];
        assert_eq!(orders(3, &columns), [vec![0, 1], vec![2]]);
    }

    #[test]
    fn a_curve_is_one_order_and_copies_are_two() {
        let curve: Vec<u32> = (0..40).map(|row| if row < 20 { 2 * row } else { 79 - 2 * row }).collect();
        let any: Vec<u32> = (0..40).map(|row| row * 17 % 41).collect();
        let (rows, mut sorted) = ((0..40).collect::<Vec<u32>>(), any.clone());
        sorted.sort_unstable();
        let any: Vec<u32> = any.iter().map(|value| sorted.partition_point(|other| other < value) as u32).collect();
        assert_eq!(orders(40, &[rows, curve, any]), [vec![0, 1], vec![2]]);
    }

    #[test]
    fn values_of_two_clusters_are_in_no_smooth_order() {
        let value = |row: u32| f64::from(row * 17 % 41) / 10.0 + if row < 20 { 0.0 } else { 60.0 };
        assert!(!are_smooth(&(0..40).map(value).collect::<Vec<f64>>()));
        assert!(are_smooth(&(0..40).map(|row| (f64::from(row) / 6.0).sin()).collect::<Vec<f64>>()));
    }

    #[test]
    fn a_column_with_some_errors_follows_and_a_rare_flag_does_not() {
        let column: Vec<u32> = (0..200).map(|row| row % 40).collect();
        let wrong: Vec<u32> =
            column.iter().zip(0..).map(|(place, row)| if row % 50 == 7 { 0 } else { *place }).collect();
        let flag = |rest: u32| (0..200).map(|row| u32::from(row % 50 == rest)).collect::<Vec<u32>>();
        let ones = [1.0; 200];
        assert!(nearly_follows(&wrong, &column, &ones) && nearly_follows(&column, &wrong, &ones[..]));
        let rare: Vec<u32> = (0..200).map(|row| row % 80).collect();
        assert!(!nearly_follows(&rare, &rare, &ones));
        assert!(!nearly_follows(&flag(3), &flag(4), &ones));
    }
}
