"""`stability`: whether fits from other seeds find the same clusters."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stickbreak import checks
from stickbreak.io import frames
from stickbreak.model.mixture import Mixture
from stickbreak.result import agreement, partitioning
from stickbreak.result.fit import Fit
from stickbreak.run.algorithms import Full, Memoized, Stochastic
from stickbreak.run.fitting import fit
from stickbreak.run.options import SeedOptions, check_known
from stickbreak.shards.pieces import failing


@dataclass(frozen=True, repr=False, eq=False)
class Stability:
    """How far fits from several seeds agree, as `stability` returns it.

    Parameters
    ----------
    seeds : ndarray of int64, shape (S,)
        The seed of each fit.
    objectives : ndarray of float64, shape (S,)
        The objective of each fit, nats.
    ari : ndarray of float64, shape (S, S)
        The adjusted Rand index of the labels of every two fits: 1 if they are the same clusters, 0 on average if the
        labels have nothing to do with each other.
    together : ndarray of float64, shape (K,)
        For each component of `best`: how often two of its rows are in one component of another fit too. NaN for a
        component with fewer than two rows.
    best : Fit
        The fit with the highest objective.
    labels : ndarray of int64, shape (n,)
        Clusters on which the fits agree best, of which a background is one: the labels with the lowest mean variation
        of information from those of the fits, found as by `Trace.point_estimate`.
    """

    seeds: NDArray[np.int64]
    objectives: NDArray[np.float64]
    ari: NDArray[np.float64]
    together: NDArray[np.float64]
    best: Fit
    labels: NDArray[np.int64]

    def __repr__(self) -> str:
        pairs = agreement.off_diagonal(self.ari)
        spread = round(float(self.objectives.max() - self.objectives.min()), 3)
        return (
            f"<Stability of {len(self.seeds)} fits: ARI {pairs.min():.2f} to {pairs.max():.2f}, objectives within "
            f"{spread:g} nats>"
        )


def stability(
    model: Mixture,
    X: ArrayLike,
    algorithm: Full | Memoized | Stochastic | None = None,
    *,
    n_seeds: int = 5,
    seed: int = 0,
    **options: Unpack[SeedOptions],
) -> Stability:
    """Fit a model from several seeds, and compare the labels of the rows.

    Clusters that other seeds find too are in the data. Where seeds disagree, the data leave the choice open, or the
    search has not found the best one.

    Parameters
    ----------
    model : Mixture
        The model.
    X : array_like of shape (n, D)
        The rows.
    algorithm : Full, Memoized or Stochastic, optional
        As in `fit`.
    n_seeds : int
        S, the number of fits, from 2 to 1000.
    seed : int
        The first seed, below 2^63 - S; the others are those that follow.
    **options
        Further arguments of `fit`, such as `sample_weight`, `n_components` or `threads`. Not allowed are `n_init` and
        `checkpoint`, which belong to a single fit.

    Returns
    -------
    Stability
        With `objectives`, `ari`, `together`, the `best` fit, and `labels` that join them. A background is one more
        cluster there, behind the components.

    Raises
    ------
    InvalidType, InvalidArgument, NotSupported
        An argument is not as described, or `fit` refuses it.
    KeyboardInterrupt
        Ctrl-C before two fits have ended. After that it ends the others: those that have ended are compared.

    Examples
    --------
    >>> import numpy as np
    >>> import stickbreak as sb
    >>> X = np.random.default_rng(0).normal([[-5.0], [5.0]], size=(2, 100)).reshape(-1, 1)
    >>> found = sb.stability(sb.Mixture(likelihood=sb.Gaussian()), X, n_seeds=3)
    >>> found
    <Stability of 3 fits: ARI 1.00 to 1.00, objectives within 0 nats>
    >>> found.together
    array([1., 1.])
    """
    checks.instance("model", model, Mixture, "a Mixture")
    n_seeds = checks.integer("n_seeds", n_seeds, minimum=2, maximum=1000)
    first = checks.integer("seed", seed, minimum=0, maximum=2**63 - 1 - n_seeds)
    _check_options(options)
    # Some tables can be read only once.
    X = frames.understood(X, "X")
    seeds = np.arange(first, first + n_seeds)
    ended: list[tuple[Fit, NDArray[np.int64]]] = []
    try:
        for each in seeds.tolist():
            found = fit(model, X, algorithm, seed=each, **options)
            if found.stop_reason.value == "interrupted":
                raise KeyboardInterrupt
            with failing():
                # Those of a collection of dask are computed here.
                labels = np.asarray(found.predict(X, exposure=options.get("exposure"), threads=options.get("threads")))
            # The background is one more group, behind the components.
            ended.append((found, np.where(labels < 0, found.n_components, labels)))
    except KeyboardInterrupt:
        if len(ended) < 2:
            raise
    fits, all_labels = zip(*ended, strict=True)
    objectives = np.array([found.objective for found in fits])
    best = objectives.tolist().index(objectives.max())
    ari = np.array([[agreement.adjusted_rand(one, other) for other in all_labels] for one in all_labels])
    others = [other for index, other in enumerate(all_labels) if index != best]
    n_groups = fits[best].n_components + 1
    shares = np.array([agreement.together(all_labels[best], other, n_groups)[:-1] for other in others])
    joint, _ = partitioning.estimate(
        np.array(all_labels, dtype=np.int32), "vi", seed=first, threads=options.get("threads")
    )
    return Stability(seeds[: len(fits)], objectives, ari, shares.mean(axis=0), fits[best], joint)


def _check_options(options: Mapping[str, object]) -> None:
    """Refuse options that are not arguments of `fit`, or belong to a single fit."""
    for name in ("n_init", "checkpoint"):
        if options.get(name) is not None:
            raise checks.not_supported(name, f"{name} in stability", "it belongs to a single fit", "n_seeds")
    check_known("stability", options, SeedOptions.__annotations__)
