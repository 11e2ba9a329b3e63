"""Documents split into given words and held-out words."""

import math
from itertools import pairwise

import numpy as np

from stickbreak import checks
from stickbreak.io.arrays import SparseRows

# Fraction of the distinct words of a document to hold out.
_SHARE = 0.2


def longest(documents: SparseRows) -> int:
    """Return the largest number of distinct words of a document; 0 without documents."""
    has_word = np.asarray(documents.values, dtype=np.float64) > 0.0
    starts = documents.starts.tolist()
    return max((int(np.count_nonzero(has_word[a:b])) for a, b in pairwise(starts)), default=0)


def split(documents: SparseRows, seed: int, min_words: int) -> tuple[SparseRows, SparseRows]:
    """Split the distinct words of each document at random; documents with fewer than `min_words` are left out.

    The split of a document depends only on the seed and on its position, and equals that of the reference scorer.

    Raises
    ------
    InvalidArgument
        All documents have fewer words.
    """
    most = longest(documents)
    if most < min_words:
        words = f"{most} distinct {'word' if most == 1 else 'words'}"
        n = documents.shape[0]
        found = f"{n} of at most {words}" if n else f"of shape {documents.shape}"
        allowed = f"documents of which at least one has {min_words} distinct words"
        hint = f"try min_words={most}" if most >= 2 else "a word is held out of a document with other words"
        raise checks.invalid_argument("test", found, allowed, hint if n else "")
    starts = documents.starts
    counts = np.asarray(documents.values, dtype=np.float64)
    is_out = np.zeros(counts.size, dtype=bool)
    kept = []
    for document in range(documents.shape[0]):
        place = np.flatnonzero(counts[starts[document] : starts[document + 1]]) + int(starts[document])
        if place.size < min_words:
            continue
        n_out = min(place.size - 1, max(1, math.floor(_SHARE * place.size + 0.5)))
        order = np.random.default_rng([seed, document]).permutation(place.size)
        is_out[place[order[:n_out]]] = True
        kept.append(document)
    return _part(documents, counts, ~is_out, kept), _part(documents, counts, is_out, kept)


def _part(documents: SparseRows, counts: np.ndarray, chosen: np.ndarray, kept: list[int]) -> SparseRows:
    """Return the chosen values of the kept documents."""
    chosen = chosen & (counts > 0)
    places = [
        np.flatnonzero(chosen[documents.starts[one] : documents.starts[one + 1]]) + int(documents.starts[one])
        for one in kept
    ]
    ends = [0]
    for places_of_document in places:
        ends.append(ends[-1] + places_of_document.size)
    all_places = np.concatenate(places) if places else np.zeros(0, dtype=np.int64)
    columns, values = documents.columns[all_places], counts[all_places]
    return SparseRows(np.asarray(ends, dtype=np.uint64), columns, values, documents.n_columns)
