//! How often two rows are together in draws of labels.

use crate::error::{Error, Result};
use crate::parallel::{Cancel, for_each_with};
use crate::room::check_room;

/// Returns the fraction of draws in which two rows are in the same cluster, (m, m), from labels, (T, m).
///
/// # Errors
/// [`Error::InvalidArgument`] for `rows` if the matrix does not fit in memory; [`Error::Cancelled`].
pub fn similarity(labels: &[i32], m: usize, cancel: &Cancel) -> Result<Vec<f64>> {
    similarity_between((labels, m), (labels, m), cancel)
}

/// As [`similarity`] between some rows, labels (T, m), and others, labels (T, l): (m, l).
///
/// # Errors
/// As [`similarity`].
pub fn similarity_between(rows: (&[i32], usize), columns: (&[i32], usize), cancel: &Cancel) -> Result<Vec<f64>> {
    let ((rows, m), (columns, l)) = (rows, columns);
    check_room(m.saturating_mul(l), |size| {
        let found = format!("{m} rows, whose similarities take {size}");
        Error::invalid("rows", found, "few enough rows that their similarities fit in memory; see similarity_blocks")
    })?;
    let (mut similarities, draws) = (vec![0.0; m * l], rows.len() / m.max(1));
    for_each_with(
        similarities.chunks_exact_mut(l.max(1)).enumerate().collect(),
        || vec![0_u32; l],
        |together, (i, out): (usize, &mut [f64])| {
            cancel.check()?;
            together.fill(0);
            for (of_rows, of_columns) in rows.chunks_exact(m).zip(columns.chunks_exact(l)) {
                together
                    .iter_mut()
                    .zip(of_columns)
                    .for_each(|(count, &label)| *count += u32::from(label == of_rows[i]));
            }
            out.iter_mut().zip(together).for_each(|(value, count)| *value = f64::from(*count) / draws as f64);
            Ok(())
        },
    )?;
    Ok(similarities)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_those_of_the_whole_matrix() {
        // Three draws of five rows.
        let labels = [0, 0, 1, 1, 2, 0, 1, 1, 0, 2, 0, 0, 0, 1, 1];
        let of = |range: std::ops::Range<usize>| -> Vec<i32> {
            labels.chunks_exact(5).flat_map(|draw| draw[range.clone()].to_vec()).collect()
        };
        let whole = similarity(&labels, 5, &Cancel::default()).expect("25 numbers");
        assert_eq!(whole[1].to_bits(), (2.0_f64 / 3.0).to_bits());
        let (rows, columns) = (of(0..2), of(2..5));
        let block = similarity_between((&rows, 2), (&columns, 3), &Cancel::default()).expect("6 numbers");
        assert_eq!(block, [&whole[2..5], &whole[7..10]].concat());
    }
}
