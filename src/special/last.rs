//! The last value of a function. Most columns of wide sparse rows have no value, and neighbours have equal arguments.

/// Computes a function only where its argument differs from the last one, with the same bits.
pub struct Last<K, V>(Option<(K, V)>);

impl<K, V> Default for Last<K, V> {
    fn default() -> Self {
        Self(None)
    }
}

impl<K: PartialEq + Copy, V: Copy> Last<K, V> {
    /// The value at an argument.
    #[inline]
    pub fn of(&mut self, argument: K, function: impl FnOnce(K) -> V) -> V {
        match self.0 {
            Some((last, value)) if last == argument => value,
            _ => self.0.insert((argument, function(argument))).1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_changes_are_computed() {
        let (mut last, mut computed) = (Last::default(), Vec::new());
        let arguments = [1.0, 1.0, 2.0, 2.0, 1.0, f64::NAN, f64::NAN];
        let values = arguments.map(|x| {
            last.of(x, |x| {
                computed.push(x);
                10.0 * x
            })
        });
        assert_eq!(values[..5], [10.0, 10.0, 20.0, 20.0, 10.0]);
        assert!(values[5..].iter().all(|value| value.is_nan()));
        assert_eq!(computed[..3], [1.0, 2.0, 1.0]);
        assert_eq!(computed.len(), 5);
    }
}
