//! Checks memory before work begins. A refused allocation gives an error then; later it would abort the process.

use crate::error::{Error, Result};

/// Checks that this many 64-bit numbers can be allocated at once; nothing is kept.
///
/// # Errors
/// The result of `refuse`, given the size as text.
pub fn check_room(n_numbers: usize, refuse: impl FnOnce(String) -> Error) -> Result<()> {
    Vec::<u64>::new().try_reserve_exact(n_numbers).map_err(|_| refuse(in_words(n_numbers)))
}

/// Formats the size of this many 64-bit numbers.
fn in_words(n_numbers: usize) -> String {
    let bytes = n_numbers as f64 * size_of::<u64>() as f64;
    let units = [("TB", 1e12), ("GB", 1e9), ("MB", 1e6)];
    let (unit, size) = units.into_iter().find(|(_, size)| bytes >= *size).unwrap_or(("bytes", 1.0));
    format!("about {:.1} {unit}", bytes / size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_machine_has_is_refused() {
        let refuse = |size: String| Error::invalid("n", size, "less");
        for (n, size) in [(usize::MAX, "TB"), (1 << 50, "about 9007.2 TB")] {
            let error = check_room(n, refuse).expect_err("petabytes");
            assert!(error.to_string().contains(size), "{error}");
        }
        assert_eq!(check_room(1000, refuse), Ok(()));
        assert_eq!(in_words(300_000), "about 2.4 MB");
    }
}
