//! Draws of labels of the same rows, with every repetition counted instead of kept.

use std::collections::HashMap;

use crate::error::{Error, Result};
use crate::hash::fingerprint;
use crate::rng::key;
use crate::room::check_room;

/// Draws of partitions. Rows that are together in every draw are one group: a partition of the lowest expected
/// loss keeps them together too (mathematics 8.12). Draws of the same partition are one draw with a weight.
///
/// The clusters of all draws are numbered one after another; such a number is a cell.
#[derive(Debug, Clone, PartialEq)]
pub struct LabelDraws {
    /// The group of each row, (n,).
    pub(super) groups: Vec<u32>,
    /// Number of rows of each group, (G,).
    pub(super) sizes: Vec<u32>,
    /// How often each distinct draw was made, (T,).
    pub(super) times: Vec<f64>,
    /// The cell of each group in each distinct draw, (G, T).
    pub(super) cells: Vec<u32>,
    /// First cell of each distinct draw, followed by the number of cells, (T + 1,).
    pub(super) starts: Vec<usize>,
}

/// Labels numbered by first appearance, and their number. `None` for negative labels.
fn renumbered(labels: &[i32]) -> Option<(Vec<u32>, usize)> {
    let most = usize::try_from(*labels.iter().max()?).ok()?;
    let (mut numbers, mut n) = (vec![u32::MAX; most + 1], 0);
    let number = |&label: &i32| {
        let number = numbers.get_mut(usize::try_from(label).ok()?)?;
        if *number == u32::MAX {
            *number = n;
            n += 1;
        }
        Some(*number)
    };
    let labels = labels.iter().map(number).collect::<Option<Vec<u32>>>()?;
    Some((labels, n as usize))
}

/// The number of the first item that equals this one, and how often each first item occurs. Items with the same key
/// are compared, so that a collision of keys costs a group and is never an error.
fn grouped(keys: impl Iterator<Item = u64>, equal: impl Fn(usize, usize) -> bool) -> (Vec<u32>, Vec<usize>) {
    let (mut first_of, mut firsts) = (HashMap::new(), Vec::new());
    let group = |(item, key): (usize, u64)| {
        let known = *first_of.entry(key).or_insert(firsts.len());
        if known < firsts.len() && equal(firsts[known], item) {
            return known as u32;
        }
        firsts.push(item);
        firsts.len() as u32 - 1
    };
    (keys.enumerate().map(group).collect(), firsts)
}

impl LabelDraws {
    /// Groups draws of the labels of n rows, (draws, n).
    ///
    /// # Errors
    /// [`Error::Format`] for negative labels, or labels of no draw or of no rows; [`Error::InvalidArgument`] for
    /// `draws` if they do not fit in memory a second time.
    pub fn new(labels: &[i32], n: usize) -> Result<Self> {
        let foreign = || Error::Format { message: "labels that are not those of draws".to_owned() };
        if n == 0 || labels.is_empty() || !labels.len().is_multiple_of(n) {
            return Err(foreign());
        }
        check_room(labels.len(), |size| {
            let found = format!("{} draws of {n} rows, whose labels take {size} here", labels.len() / n);
            Error::invalid("draws", found, "fewer draws, or fewer rows (see keep_rows)")
        })?;
        let all = labels.chunks_exact(n).map(renumbered).collect::<Option<Vec<_>>>().ok_or_else(foreign)?;
        let keys = all.iter().map(|(draw, _)| fingerprint(0, draw.iter().map(|&label| u64::from(label))));
        let (draw_of, firsts) = grouped(keys, |one, other| all[one].0 == all[other].0);
        let mut times = vec![0.0; firsts.len()];
        for draw in draw_of {
            times[draw as usize] += 1.0;
        }
        let draws: Vec<&[u32]> = firsts.iter().map(|&first| &*all[first].0).collect();
        let mut starts = vec![0];
        for &first in &firsts {
            starts.push(starts[starts.len() - 1] + all[first].1);
        }
        // Cells are stored in 32 bits.
        u32::try_from(starts[firsts.len()]).map_err(|_| {
            let found = format!("draws with {} clusters together", starts[firsts.len()]);
            Error::invalid("draws", found, format!("at most {} clusters", u32::MAX))
        })?;
        let row_keys = (0..n).map(|row| key(0, draws.iter().map(|draw| u64::from(draw[row]))));
        let (groups, rows) = grouped(row_keys, |one, other| draws.iter().all(|draw| draw[one] == draw[other]));
        let mut sizes = vec![0; rows.len()];
        for &group in &groups {
            sizes[group as usize] += 1;
        }
        let cells_of = |&row: &usize| draws.iter().zip(&starts).map(move |(draw, start)| draw[row] + *start as u32);
        let cells = rows.iter().flat_map(cells_of).collect();
        Ok(Self { groups, sizes, times, cells, starts })
    }

    /// The same groups with evenly spaced distinct draws, `most` at most. `None` if there are no more than that.
    pub(super) fn thinned(&self, most: usize) -> Option<Self> {
        let step = self.n_distinct().div_ceil(most.max(1));
        if step < 2 {
            return None;
        }
        let kept: Vec<usize> = (0..self.n_distinct()).step_by(step).collect();
        let (mut starts, mut shifts) = (vec![0], Vec::with_capacity(kept.len()));
        for &draw in &kept {
            let (first, end) = (self.starts[draw], starts[starts.len() - 1]);
            shifts.push(first - end);
            starts.push(end + self.starts[draw + 1] - first);
        }
        let cell = |cells: &[u32]| kept.iter().zip(&shifts).map(|(&draw, &shift)| cells[draw] - shift as u32).collect();
        let cells = self.cells.chunks_exact(self.n_distinct()).flat_map(|cells| -> Vec<u32> { cell(cells) }).collect();
        let times = kept.iter().map(|&draw| self.times[draw]).collect();
        Some(Self { groups: self.groups.clone(), sizes: self.sizes.clone(), times, cells, starts })
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.groups.len()
    }

    /// Number of groups of rows.
    pub fn n_groups(&self) -> usize {
        self.sizes.len()
    }

    /// Number of distinct draws.
    pub fn n_distinct(&self) -> usize {
        self.times.len()
    }

    /// The clusters of the draw with the most.
    pub fn most_clusters(&self) -> usize {
        self.starts.windows(2).map(|bounds| bounds[1] - bounds[0]).max().unwrap_or(0)
    }

    /// The distinct draws with at most this many clusters.
    pub(super) fn of_clusters(&self, most: usize) -> Vec<usize> {
        (0..self.n_distinct()).filter(|&draw| self.starts[draw + 1] - self.starts[draw] <= most).collect()
    }

    /// The cells of a group, one for each distinct draw.
    pub(super) fn cells_of(&self, group: usize) -> &[u32] {
        &self.cells[group * self.n_distinct()..][..self.n_distinct()]
    }

    /// The cluster of each group in a distinct draw, from 0.
    pub(super) fn draw(&self, draw: usize) -> Vec<u32> {
        (0..self.n_groups()).map(|group| self.cells_of(group)[draw] - self.starts[draw] as u32).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_are_counted() {
        // Four draws of five rows; the second is the first under other names. Rows 0 and 1 are always together.
        let labels = [0, 0, 1, 1, 2, 7, 7, 0, 0, 3, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0];
        let draws = LabelDraws::new(&labels, 5).expect("four draws");
        assert_eq!((draws.n_rows(), draws.n_groups(), draws.n_distinct()), (5, 4, 3));
        assert_eq!((&*draws.groups, &*draws.sizes), (&[0, 0, 1, 2, 3][..], &[2, 1, 1, 1][..]));
        assert_eq!((&*draws.times, &*draws.starts), (&[2.0, 1.0, 1.0][..], &[0, 3, 5, 6][..]));
        assert_eq!((draws.most_clusters(), draws.of_clusters(2)), (3, vec![1, 2]));
        assert_eq!(draws.cells_of(1), [1, 3, 5]);
        assert_eq!(draws.draw(1), [0, 0, 1, 1]);
    }

    #[test]
    fn some_draws_of_the_same_groups() {
        let labels = [0, 0, 1, 1, 2, 0, 1, 1, 2, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4];
        let draws = LabelDraws::new(&labels, 5).expect("five draws");
        assert!(draws.thinned(5).is_none());
        let some = draws.thinned(2).expect("more than two");
        assert_eq!((some.n_groups(), some.n_distinct()), (draws.n_groups(), 2));
        assert_eq!([some.draw(0), some.draw(1)], [draws.draw(0), draws.draw(3)]);
        assert_eq!((&*some.times, &*some.starts), (&[1.0, 1.0][..], &[0, 3, 4][..]));
    }

    #[test]
    fn some_draws_keep_their_repetitions() {
        // Four distinct draws of three rows, made three times, once, twice and once.
        let distinct = [[0, 0, 1], [0, 1, 1], [0, 1, 2], [0, 0, 0]];
        let labels: Vec<i32> = [0, 1, 0, 2, 0, 3, 2].into_iter().flat_map(|draw: usize| distinct[draw]).collect();
        let draws = LabelDraws::new(&labels, 3).expect("seven draws");
        let some = draws.thinned(2).expect("more than two");
        assert_eq!([some.draw(0), some.draw(1)], [draws.draw(0), draws.draw(2)]);
        assert_eq!(some.times, [3.0, 2.0]);
    }

    #[test]
    fn what_are_no_draws_is_refused() {
        for (labels, n) in [(vec![], 3), (vec![0, 1], 0), (vec![0, 1, 2], 2), (vec![0, -1], 2), (vec![-1, -1], 2)] {
            assert!(matches!(LabelDraws::new(&labels, n), Err(Error::Format { .. })), "{labels:?}");
        }
    }

    #[test]
    fn equal_keys_are_no_error() {
        let (groups, firsts) = grouped([1, 1, 1, 1].into_iter(), |one, other| one % 2 == other % 2);
        assert_eq!((groups, firsts), (vec![0, 1, 0, 2], vec![0, 1, 3]));
    }
}
