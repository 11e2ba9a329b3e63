"""Documents split into given words and held-out words."""

import math

import numpy as np

from stickbreak.io.arrays import SparseRows

# Fraction of the distinct words of a document to hold out.
_SHARE = 0.2


def split(documents: SparseRows, seed: int, min_words: int) -> tuple[SparseRows, SparseRows]:
    """Split the distinct words of each document at random; documents with fewer than `min_words` are left out.

    The split of a document depends only on the seed and on its position, and equals that of the reference scorer.
    """
    starts = documents.starts
    counts = np.asarray(documents.values, dtype=np.float64)
    is_out = np.zeros(counts.size, dtype=bool)
    kept = []
    for document in range(documents.shape[0]):
        place = np.flatnonzero(counts[starts[document] : starts[document + 1]]) + int(starts[document])
        if place.size < max(2, min_words):
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
