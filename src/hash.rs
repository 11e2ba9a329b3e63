//! Fingerprints: numbers that identify data. They are not cryptographic.

/// Fingerprints a sequence of words, continuing the fingerprint `before` (0 for a new one).
pub fn fingerprint(before: u64, words: impl IntoIterator<Item = u64>) -> u64 {
    // The rotation moves high bits down, which a product alone never does: otherwise two changed signs would cancel.
    words.into_iter().fold(before ^ 0xcbf2_9ce4_8422_2325, |hash, word| {
        (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
    })
}

/// Fingerprints bytes.
pub fn of_bytes(bytes: &[u8]) -> u64 {
    let word = |chunk: &[u8]| chunk.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
    fingerprint(bytes.len() as u64, bytes.chunks(8).map(word))
}

/// Fingerprints numbers by their bits.
pub fn of_numbers<'a>(before: u64, numbers: impl IntoIterator<Item = &'a f64>) -> u64 {
    fingerprint(before, numbers.into_iter().map(|number| number.to_bits()))
}

/// Mixes the bits of a fingerprint, so that its values are as if drawn uniformly (the finaliser of `MurmurHash3`).
pub fn mixed(hash: u64) -> u64 {
    let hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_order_and_length_are_seen() {
        let prints =
            [&[1.0, 2.0][..], &[-1.0, -2.0], &[2.0, 1.0], &[1.0, 2.0, 0.0], &[]].map(|numbers| of_numbers(0, numbers));
        for (i, a) in prints.iter().enumerate() {
            assert!(prints[..i].iter().all(|b| a != b));
        }
    }
}
