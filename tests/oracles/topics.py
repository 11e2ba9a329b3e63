"""Latent Dirichlet allocation, dense or with the L best topics of each word, in plain NumPy (mathematics 11)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln, xlogy

Array = NDArray[np.float64]


def log_beta(theta: Array) -> Array:
    """Return ln B of the last axis."""
    return gammaln(theta).sum(-1) - gammaln(theta.sum(-1))


def top(weights: Array, width: int) -> Array:
    """Return responsibilities that keep the `width` largest log weights of each row; ties go to the lower column."""
    kept = weights
    if width < weights.shape[1]:
        order = np.argsort(-weights, axis=1, kind="stable")[:, :width]
        kept = np.full_like(weights, -np.inf)
        np.put_along_axis(kept, order, np.take_along_axis(weights, order, 1), 1)
    shares = np.exp(kept - kept.max(axis=1, keepdims=True))
    return shares / shares.sum(axis=1, keepdims=True)


def log_topics(sums: Array, word: float, objective: str) -> Array:
    """Return E log phi, or log phi of the point estimate, (K, V)."""
    posterior = sums + word
    if objective == "map":
        return np.log(posterior) - np.log(posterior.sum(1, keepdims=True))
    return digamma(posterior) - digamma(posterior.sum(1, keepdims=True))


@dataclass
class Step:
    """Result of a local step of all documents."""

    sums: Array
    counts: Array
    entropy: float


def local_step(counts: Array, log_phi: Array, prior: float, width: int, turns: int) -> Step:
    """Turn over counts and responsibilities of each document; every turn selects."""
    n_topics = log_phi.shape[0]
    sums, all_counts, entropy = np.zeros_like(log_phi), np.zeros((len(counts), n_topics)), 0.0
    for document, row in enumerate(counts):
        words = np.flatnonzero(row)
        if words.size == 0:
            continue
        weights, n = log_phi[:, words].T, row[words]
        shares = top(weights + np.log(prior), width)
        for _ in range(turns):
            shares = top(weights + digamma(n @ shares + prior), width)
        sums[:, words] += (shares * n[:, None]).T
        all_counts[document] = n @ shares
        entropy -= float(n @ xlogy(shares, shares).sum(1))
    return Step(sums, all_counts, entropy)


def sparse_step(counts: Array, log_phi: Array, prior: float, width: int, steps: int) -> Step:
    """Take steps with the published schedule of selections and the active set of each document.

    Responsibilities are those under the last counts, without another selection.
    """
    n_topics = log_phi.shape[0]
    sums, all_counts, entropy = np.zeros_like(log_phi), np.zeros((len(counts), n_topics)), 0.0
    for document, row in enumerate(counts):
        words = np.flatnonzero(row)
        if words.size == 0:
            continue
        weights, n = log_phi[:, words].T, row[words]
        document_counts, active = np.zeros(n_topics), np.full(n_topics, True)
        shares = np.ones((words.size, n_topics))
        for turn in range(steps + 1):
            selects = turn < steps and (turn < 5 or (turn - 1) % 10 == 0)
            if turn > 0 and selects:
                active &= document_counts > 1e-9
            logs = weights + (digamma(document_counts + prior) if turn > 0 else np.log(prior))
            shares = top(np.where(active if selects else shares > 0, logs, -np.inf), width)
            document_counts = n @ shares
        sums[:, words] += (shares * n[:, None]).T
        all_counts[document] = document_counts
        entropy -= float(n @ xlogy(shares, shares).sum(1))
    return Step(sums, all_counts, entropy)


def bound(step: Step, prior: float, word: float, objective: str) -> float:
    """Return the collapsed bound (mathematics 11.2), nats."""
    n_topics, n_words = step.sums.shape
    a, b = np.full(n_topics, prior), np.full(n_words, word)
    if objective == "map":
        of_topics = ((step.sums + word) * log_topics(step.sums, word, "map")).sum() - n_topics * log_beta(b)
    else:
        of_topics = (log_beta(step.sums + word) - log_beta(b)).sum()
    return float(of_topics + (log_beta(step.counts + prior) - log_beta(a)).sum() + step.entropy)


def document_bound(counts: Array, log_phi: Array, shares: Array, prior: float) -> float:
    """Return the general form of the bound of one document with theta = N + a, nats."""
    theta = prior + counts @ shares
    log_pi = digamma(theta) - digamma(theta.sum())
    data = counts @ ((shares * (log_phi + log_pi)).sum(1) - xlogy(shares, shares).sum(1))
    a = np.full(theta.size, prior)
    divergence = log_beta(a) - log_beta(theta) + ((theta - a) * log_pi).sum()
    return float(data - divergence)


def fixed_point(phi: Array, counts: Array, concentration: float, method: str) -> Array:
    """Return the proportions of a document at the fixed point that turns from equal weights lead to."""
    added = 0.0 if method == "ml" else concentration
    weights, theta = np.ones(len(phi)), np.full(len(phi), 1 / len(phi))
    for _ in range(1_000_000):
        found = weights * (phi @ (counts / (weights @ phi)))
        before, theta = theta, (found + added) / (found + added).sum()
        if np.abs(theta - before).max() < 1e-15:
            break
        weights = np.exp(digamma(found + added)) if method == "vb" else theta
    return theta


def completion(
    topics: Array, counts: Array, concentration: float, method: str, seed: int, min_words: int = 10
) -> float:
    """Return the held-out log probability of a word, with proportions from a plain fixed-point iteration.

    The split and the floor of the probabilities are those of the reference scorer of Hughes and Sudderth.
    """
    phi = topics + 1e-12
    phi /= phi.sum(1, keepdims=True)
    total, n_words = 0.0, 0.0
    for document, row in enumerate(counts):
        words = np.flatnonzero(row)
        if words.size < max(2, min_words):
            continue
        n_out = min(words.size - 1, max(1, int(np.floor(0.2 * words.size + 0.5))))
        order = np.random.default_rng([seed, document]).permutation(words.size)
        held, given = words[order[:n_out]], np.setdiff1d(words, words[order[:n_out]])
        theta = fixed_point(phi[:, given], row[given], concentration, method)
        total += float(row[held] @ np.log(theta @ phi[:, held]))
        n_words += float(row[held].sum())
    return total / n_words


def coherence(counts: Array, words: NDArray[np.int64], measure: str) -> float:
    """Return the mean over pairs of words, the most probable first, of one topic."""
    has = counts > 0
    words = np.array([word for word in words if has[:, word].any()])
    values = []
    for index, later in enumerate(words):
        for earlier in words[:index]:
            joint, one, other = (has[:, later] & has[:, earlier]).sum(), has[:, later].sum(), has[:, earlier].sum()
            if measure == "umass":
                values.append(np.log((joint + 1) / other))
            elif joint == 0:
                values.append(-1.0)
            elif joint == len(has):
                values.append(1.0)
            else:
                p = joint / len(has)
                values.append(np.log(p / (one / len(has) * other / len(has))) / -np.log(p))
    return float(np.mean(values))
