"""Effective draws as published (Vehtari and others 2021, section 3.2; Geyer 1992), with a table of all lags."""

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm, rankdata

Array = NDArray[np.float64]


def bulk_effective_draws(draws: Array) -> float:
    """Of (chains, draws): split chains, normal scores of ranks, the initial monotone sequence of pairs of lags."""
    n = draws.shape[1] // 2
    halves = np.concatenate([draws[:, :n], draws[:, -n:]])
    ranks = rankdata(halves, method="average").reshape(halves.shape)
    scores = norm.ppf((ranks - 0.375) / (halves.size + 0.25))
    centred = scores - scores.mean(axis=1, keepdims=True)
    covariances = np.array([(centred[:, : n - lag] * centred[:, lag:]).sum(axis=1).mean() / n for lag in range(n)])
    within = covariances[0] * n / (n - 1)
    total = covariances[0] + scores.mean(axis=1).var(ddof=1)
    known = 1.0 - (within - covariances) / total
    table = np.zeros(n)
    table[0], table[1] = 1.0, known[1]
    even, odd, lag = 1.0, known[1], 1
    while lag < n - 3 and even + odd > 0.0:
        even, odd = known[lag + 1], known[lag + 2]
        if even + odd >= 0.0:
            table[lag + 1], table[lag + 2] = even, odd
        lag += 2
    last = lag - 2
    if even > 0.0:
        table[last + 1] = even
    for place in range(1, last - 1, 2):
        before = table[place - 1] + table[place]
        if table[place + 1] + table[place + 2] > before:
            table[place + 1] = table[place + 2] = before / 2.0
    time = -1.0 + 2.0 * table[: last + 1].sum() + table[last + 1]
    return float(halves.size / max(time, 1.0 / np.log10(halves.size)))
