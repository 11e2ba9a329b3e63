//! Coherence of topics: how often the words of a topic occur in the same documents (mathematics 11.7).

use crate::data::{RowUnits, Rows};
use crate::error::{Error, Result};
use crate::local_step::DocumentWords;
use crate::parallel::{Cancel, try_map};
use crate::room::check_room;
use crate::simd::Scalar;

/// A measure of coherence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coherence {
    /// Normalised pointwise mutual information of pairs of words in documents (Bouma 2009; Lau, Newman & Baldwin 2014).
    Npmi,
    /// The log conditional probability of a word given a more probable one (Mimno et al. 2011).
    Umass,
}

impl Coherence {
    /// Returns the measure with that name.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "npmi" => Some(Self::Npmi),
            "umass" => Some(Self::Umass),
            _ => None,
        }
    }
}

/// Returns the mean of a measure over all pairs of the words of each topic, (K,). `words` is (K, n), the most probable
/// first. Words that no document contains are left out; the result is NaN if fewer than two remain.
///
/// # Errors
/// [`Error::InvalidArgument`] for `n` if the marks of the words do not fit in memory; [`Error::Cancelled`].
pub fn coherence<F: Scalar>(
    rows: &dyn Rows<F>,
    words: &[u32],
    n: usize,
    measure: Coherence,
    cancel: &Cancel,
) -> Result<Vec<f64>> {
    let documents = DocumentWords::of(&RowUnits::all(rows, None));
    let n_documents = documents.n_documents();
    let mut listed = words.to_vec();
    listed.sort_unstable();
    listed.dedup();
    check_room(n_documents.div_ceil(64).saturating_mul(listed.len()), |size| {
        let found = format!("{n} words a topic, whose marks in {n_documents} documents take {size}");
        Error::invalid("n", found, "few enough words a topic to fit in memory")
    })?;
    // One bit per document, set if the document contains the word.
    let mut marks = vec![vec![0_u64; n_documents.div_ceil(64)]; listed.len()];
    for document in 0..n_documents {
        for word in &documents.words()[documents.of_document(document)] {
            if let Ok(place) = listed.binary_search(word) {
                marks[place][document / 64] |= 1 << (document % 64);
            }
        }
    }
    let place = |word: &u32| listed.partition_point(|other| other < word);
    let both = |a: usize, b: usize| -> f64 {
        let pairs = marks[a].iter().zip(&marks[b]);
        f64::from(pairs.map(|(a, b)| (a & b).count_ones()).sum::<u32>())
    };
    let n_documents = n_documents as f64;
    try_map(words.len() / n.max(1), |topic| {
        cancel.check()?;
        let present: Vec<usize> =
            words[topic * n..][..n].iter().map(place).filter(|&place| both(place, place) > 0.0).collect();
        let (mut sum, mut n_pairs) = (0.0, 0.0);
        for (index, &later) in present.iter().enumerate() {
            for &earlier in &present[..index] {
                let (joint, of_later, of_earlier) = (both(later, earlier), both(later, later), both(earlier, earlier));
                sum += match measure {
                    Coherence::Umass => ((joint + 1.0) / of_earlier).ln(),
                    Coherence::Npmi => npmi(joint / n_documents, of_later / n_documents, of_earlier / n_documents),
                };
                n_pairs += 1.0;
            }
        }
        Ok(sum / n_pairs)
    })
}

/// `ln(p / (a b)) / -ln p`: -1 for words that never occur together, 1 for words that always do.
fn npmi(joint: f64, a: f64, b: f64) -> f64 {
    if joint == 0.0 {
        -1.0
    } else if joint >= 1.0 {
        1.0
    } else {
        (joint / (a * b)).ln() / -joint.ln()
    }
}
