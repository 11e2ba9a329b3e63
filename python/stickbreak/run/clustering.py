"""`hierarchy`: from a model and data to a binary tree over the rows."""

from typing import Literal

from numpy.typing import ArrayLike

from stickbreak import _core, checks
from stickbreak.io import names
from stickbreak.model.likelihoods import Likelihood
from stickbreak.model.mixture import Mixture
from stickbreak.result.hierarchy import Hierarchy
from stickbreak.run.reading import on_missing, read
from stickbreak.run.sampling import own_rows, warn_of_columns, warn_of_estimate


def hierarchy(
    model: Mixture,
    data: ArrayLike,
    method: Literal["bhc", "incremental"] = "bhc",
    *,
    n_trials: int = 1,
    seed: int = 0,
    threads: int | None = None,
) -> Hierarchy:
    r"""Cluster rows hierarchically by the probability that they belong together.

    Bayesian hierarchical clustering [1]_ repeatedly joins the two trees with the smallest dissimilarity

    .. math:: d(l, r) = \frac{\phi_l \phi_r}{h(l \cup r)},

    where h is the weight of the rows as one cluster and :math:`\phi` the potential of a tree. The process must have
    partitions in product form. The incremental method [2]_ inserts rows one by one where the potential gains most, and
    takes trees apart whose rows turn out not to belong together.

    Parameters of the likelihood that are `None` are estimated first, as in `sample`, which may take longer than the
    tree. A `SupportWarning` names columns that the model does not see. Ctrl-C stops within a second and raises
    `KeyboardInterrupt`.

    Parameters
    ----------
    model : Mixture
        The model.
    data : array_like of shape (n, D)
        The rows, as in `sample`.
    method : {"bhc", "incremental"}
        "bhc": greedy, in :math:`O(n^2 \log n)` time and :math:`O(n^2)` memory, for at most 16384 rows. It compares all
        pairs, so it takes minutes for many rows. "incremental": about :math:`O(n (K + h))` for K clusters and trees of
        height h.
    n_trials : int
        Number of trees to build, at least 1. Each tree uses auxiliary variables and learned parameters of the process
        drawn given the previous tree, and "incremental" also uses a new random order. The hierarchy with the largest
        log joint probability of its "map" cut and the learned parameters, with u integrated out, is kept. If nothing is
        random ("bhc" under a `DirichletProcess` with a fixed concentration), one tree is built.
    seed : int
        Decides every random choice; 0 to 2**64 - 1.
    threads : int, optional
        The number of threads. Default: one for every core.

    Returns
    -------
    Hierarchy
        The tree, given the values of the process in `Hierarchy.hyperparameters`.

    Raises
    ------
    InvalidType
        An argument has the wrong type; the error's `argument` names it.
    InvalidArgument
        An argument has a value that is not allowed, including too many rows for "bhc".
    NotSupported
        The likelihood has no closed marginal likelihood, such as ``SphericalGaussian(base="product")``. Or partitions
        of the process have no product form, such as those of a `FiniteDirichlet` or a `MixtureOfFiniteMixtures`, or of
        a `PitmanYor` with a concentration of at most 0.
    NumericalError
        A computation left the range of floating-point numbers.

    References
    ----------
    .. [1] Heller, K. A. and Ghahramani, Z. (2005). Bayesian hierarchical clustering. International Conference on
           Machine Learning.
    .. [2] Lee, J. and Choi, S. (2014). Incremental tree-based inference with dependent normalized random measures.
           Artificial Intelligence and Statistics.

    Examples
    --------
    >>> import numpy as np
    >>> import stickbreak as sb
    >>> X = np.random.default_rng(0).normal([[-8.0], [8.0]], size=(2, 10)).reshape(-1, 1)
    >>> tree = sb.hierarchy(sb.Mixture(likelihood=sb.Gaussian(prior="rule")), X, "incremental")
    >>> tree
    <Hierarchy of 20 rows, 2 clusters>
    """
    checks.instance("model", model, Mixture, "a Mixture")._check_no_background("hierarchies")
    method = checks.word("method", method, ("bhc", "incremental"))  # type: ignore[assignment]
    n_trials = checks.integer("n_trials", n_trials, minimum=1, maximum=1_000_000)
    seed, threads = checks.seed(seed), checks.threads(threads)
    given = read(data, model, init=None, file=None, minimum=1)
    model = given.placed(model)
    rows = own_rows(given, "data")
    process = model.process._to_core()
    _core.check_hierarchy(model.likelihood._to_core(), process, method, rows.shape[0])
    with names.naming(given.names, on_missing(model.likelihood)):
        likelihood, fit = _core.estimate(rows, model.likelihood._to_core(), process, seed, False, threads)
        if fit is not None:
            warn_of_estimate(fit, given.names)
        state = _core.hierarchy(
            rows,
            likelihood=likelihood,
            process=process,
            method=method,
            n_trials=n_trials,
            seed=seed,
            threads=threads,
        )
    if fit is None:
        warn_of_columns(state, given.names)
    filled = Mixture(likelihood=Likelihood._from_core(*state.likelihood), process=model.process)
    return Hierarchy(state, filled, rows, given.names, given.levels)
