//! Sums in a binary tree whose shape depends on the number of summands alone: neighbours are added first, then
//! neighbouring pairs, and so on. What has no neighbour goes up as it is. So a sum has the same bits wherever its
//! summands were computed, and in whatever order they came.

use crate::error::Result;

/// A sum to which summands are added in order. It holds one partial sum for each level of the tree.
#[derive(Debug)]
pub struct TreeSum<T> {
    /// Sums of consecutive summands, each with its level; levels fall.
    partial: Vec<(u32, T)>,
}

impl<T> Default for TreeSum<T> {
    fn default() -> Self {
        Self { partial: Vec::new() }
    }
}

impl<T> TreeSum<T> {
    /// Adds the next summand. `add` adds its second argument to its first.
    ///
    /// # Errors
    /// Errors of `add`.
    pub fn push(&mut self, summand: T, add: &mut impl FnMut(&mut T, T) -> Result<()>) -> Result<()> {
        let (mut level, mut sum) = (0, summand);
        while let Some((_, mut left)) = self.partial.pop_if(|(other, _)| *other == level) {
            add(&mut left, sum)?;
            (level, sum) = (level + 1, left);
        }
        self.partial.push((level, sum));
        Ok(())
    }

    /// Returns the sum; `None` without summands.
    ///
    /// # Errors
    /// Errors of `add`.
    pub fn finish(mut self, add: &mut impl FnMut(&mut T, T) -> Result<()>) -> Result<Option<T>> {
        let Some((_, mut sum)) = self.partial.pop() else { return Ok(None) };
        while let Some((_, mut left)) = self.partial.pop() {
            add(&mut left, sum)?;
            sum = left;
        }
        Ok(Some(sum))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sum of summands that each write down where they were added.
    fn written(n: usize) -> Option<String> {
        let mut add = |left: &mut String, right: String| {
            *left = format!("({left} {right})");
            Ok(())
        };
        let mut sum = TreeSum::default();
        (0..n).for_each(|number| sum.push(number.to_string(), &mut add).expect("it cannot fail"));
        sum.finish(&mut add).expect("it cannot fail")
    }

    /// The same level by level.
    fn by_levels(n: usize) -> Option<String> {
        let mut level: Vec<String> = (0..n).map(|number| number.to_string()).collect();
        while level.len() > 1 {
            level = level.chunks(2).map(|pair| pair.join(" ")).map(|both| bracketed(&both)).collect();
        }
        level.pop()
    }

    fn bracketed(both: &str) -> String {
        // A single summand, or a single bracket, goes up as it is.
        let mut depth = 0;
        let splits = both.chars().any(|letter| {
            depth += i32::from(letter == '(') - i32::from(letter == ')');
            letter == ' ' && depth == 0
        });
        if splits { format!("({both})") } else { both.to_owned() }
    }

    #[test]
    fn neighbours_are_added_level_by_level() {
        assert_eq!(written(0), None);
        assert_eq!(written(5).as_deref(), Some("(((0 1) (2 3)) 4)"));
        (1..70).for_each(|n| assert_eq!(written(n), by_levels(n), "{n}"));
    }
}
