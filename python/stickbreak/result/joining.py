"""`concat`: traces of several seeds as one."""

from collections.abc import Iterable, Iterator

import numpy as np

from stickbreak import checks
from stickbreak.model.mixture import Mixture
from stickbreak.result.advising_chains import warn_of_draws
from stickbreak.result.draws import Ran
from stickbreak.result.extending import side_by_side
from stickbreak.result.trace import Trace


def concat(traces: Iterable[Trace]) -> Trace:
    """Return one trace with the chains of several, of the same model, data and sampler, and of other seeds.

    Parameters
    ----------
    traces : iterable of Trace
        At least one; with equal numbers of draws.

    Returns
    -------
    Trace
        The chains of the first, then those of the second, and so on. It cannot be extended.

    Raises
    ------
    InvalidType, InvalidArgument
        An argument is no sequence of traces, or they differ in more than their seeds, or not in those.

    Warns
    -----
    ConvergenceWarning, TruncationWarning
        As in `sample`. All chains count.

    Examples
    --------
    >>> import numpy as np
    >>> import stickbreak as sb
    >>> X = np.random.default_rng(0).normal(size=(20, 1))
    >>> model = sb.Mixture(sb.Gaussian())
    >>> both = sb.concat([sb.sample(model, X, draws=20, chains=2, seed=seed) for seed in (0, 1)])
    >>> both.n_clusters.shape
    (4, 20)
    """
    given = checks.items("traces", traces, "a list of traces")
    if not given:
        raise checks.invalid_argument("traces", "none", "at least one")
    each = [checks.instance(f"traces[{place}]", one, Trace, "a Trace") for place, one in enumerate(given)]
    first, runs = each[0], [trace._chains.ran for trace in each]
    known = [ran for ran in runs if ran is not None]
    if len(known) < len(each):
        raise checks.invalid_argument("traces", "one of a file of an older version", "those that know their sampler")
    for place, (trace, ran) in enumerate(zip(each, known, strict=True)):
        found = next((name for name, same in _agreements(first, known[0], trace, ran) if not same), None)
        if found is not None:
            raise checks.invalid_argument(f"traces[{place}]", f"another {found} than traces[0]", "the same")
    seeds = [set(ran.seeds) for ran in known]
    for place, own in enumerate(seeds):
        if both := own.intersection(*[set().union(*seeds[:place])]):
            found = f"seed {min(both)} a second time"
            raise checks.invalid_argument(
                f"traces[{place}]", found, "another seed, because equal seeds give equal draws"
            )
    joined = first._with_chains(side_by_side([trace._chains for trace in each], known))
    warn_of_draws(joined.advice(), stacklevel=2)
    return joined


def _is_same(one: Mixture, other: Mixture) -> bool:
    """Return whether likelihood and process have the same names and parameters."""
    pairs = ((one.likelihood, other.likelihood), (one.process, other.process))
    for (name, own), (other_name, others) in ((a._to_core(), b._to_core()) for a, b in pairs):
        if name != other_name or own.keys() != others.keys():
            return False
        if not all(np.array_equal(value, others[key]) for key, value in own.items()):
            return False
    return True


def _agreements(one: Trace, ran: Ran, other: Trace, other_ran: Ran) -> Iterator[tuple[str, bool]]:
    """Yield what must agree, and whether it does."""
    a, b = one._chains, other._chains
    yield "sampler", ran.sampler == other_ran.sampler and one.exact == other.exact
    yield "number of draws", a.log_joint.shape[1] == b.log_joint.shape[1]
    yield "warmup or thin", (ran.warmup, ran.thin) == (other_ran.warmup, other_ran.thin)
    yield "model", _is_same(one._model, other._model) and one.column_names == other.column_names
    has_rows = one._sampled is not None, other._sampled is not None
    same = has_rows[0] == has_rows[1] and a.n_rows == b.n_rows
    if ran.fingerprint and other_ran.fingerprint:
        same = ran.fingerprint == other_ran.fingerprint
    yield "data", same
    mine, theirs = a.kept_rows, b.kept_rows
    both = mine is not None and theirs is not None and np.array_equal(mine, theirs)
    yield "keep_rows", both or (mine is None and theirs is None)
