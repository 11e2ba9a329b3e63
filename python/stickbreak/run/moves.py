"""Moves: changes of the number of components between passes, each judged by the exact bound of all data.

To add a move, add one class here whose fields have the parameter names of the core.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

from stickbreak import _core
from stickbreak.model.model import Model
from stickbreak.model.specification import Specification


class Move(Specification):
    """Base of all moves."""

    _family: ClassVar[str] = "moves"

    def _check(self) -> None:
        _core.check_move(*self._to_core())


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Birth(Move):
    r"""Births: replace a component by several new ones [1]_.

    A pass collects rows of every component, from all batches. Before the next pass a mixture of `fresh` parts is fitted
    to the rows of each, weighted up to the mass of the component. In that pass each row splits its responsibility for
    the component between its two best parts. If the row has no free slot under `sparsity`, the whole responsibility
    goes to the best part. The change of the bound is then known exactly:

    .. math:: \Delta \mathcal L = \sum_j c(\lambda_0 + S_j) - c(\lambda_0 + S_k) - (J - 1) c(\lambda_0)
              + \sum_{i < j} G_{ij} + \mathcal L^*(N') - \mathcal L^*(N)

    where :math:`G_{ij}` is the entropy, in nats, of the split between parts i and j. Parts are joined while that gains.
    Parts that do not gain on the collected rows are not tried. If no part gains, two halves are tried. Every component
    with at least two rows is a target, the largest 100 at a time. After a failure it waits for 5 passes, then 10, 20
    and so on, or until its mass has changed by a tenth.

    Parameters
    ----------
    adoption : {"split", "pass"}
        How new components enter. "split": as above; the bound never falls. "pass", as in [1]_: the parts of the 10
        largest ready components are appended, with copies of the rows that they were fitted to, and compete with all
        components for a pass. Then the copies are removed and superfluous new components are merged. If the bound is
        lower than before, all is undone. Components that lose their rows later stay, unless `Delete` is among the
        moves.
    max_subsample : int
        Maximum number of rows that the parts of a component are fitted to, at least 4. Only clusters among these rows
        can be found.
    threshold : float
        Minimum responsibility of such a row, at least 0 and below 1.
    fresh : int
        Maximum number of parts of a component, at least 2.

    Raises
    ------
    InvalidType, InvalidArgument
        A parameter has a type or a value that is not allowed.

    References
    ----------
    .. [1] Hughes, M. C. and Sudderth, E. B. (2013). Memoized online variational inference for Dirichlet process
           mixture models. Advances in Neural Information Processing Systems 26.

    Examples
    --------
    >>> import stickbreak as sb
    >>> sb.Birth(fresh=5)
    Birth(adoption='split', max_subsample=5000, threshold=0.1, fresh=5)
    """

    adoption: Literal["split", "pass"] = "split"
    max_subsample: int = 5000
    threshold: float = 0.1
    fresh: int = 10


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Split(Move):
    """Splits: replace a component by two halves, as in accelerated variational Dirichlet-process mixtures [1]_.

    They are births with two parts, for `candidates` components drawn by their masses. The parts start on either side of
    the plane through the mean, across the leading principal component (from k-means++ for likelihoods without a free
    mean or without covariances). The candidate with the largest gain is split.

    Parameters
    ----------
    candidates : int
        Number of components to try in a pass, at least 1.

    Raises
    ------
    InvalidType, InvalidArgument
        A parameter has a type or a value that is not allowed.

    References
    ----------
    .. [1] Kurihara, K., Welling, M. and Vlassis, N. (2006). Accelerated variational Dirichlet process mixtures.
           Advances in Neural Information Processing Systems 19.

    Examples
    --------
    >>> import stickbreak as sb
    >>> sb.Split()
    Split(candidates=10)
    """

    candidates: int = 10


@dataclass(frozen=True, eq=False, repr=False)
class Merge(Move):
    r"""Merges: replace two components by one [1]_.

    The gain is exact, :math:`\Delta \mathcal L = U_{ab} - G_{ab}`: the gain of marginal likelihoods and weights, less
    the entropy :math:`G_{ab} \ge 0` of rows that both share. Pairs with :math:`U_{ab} \le 0` cannot gain. For the best
    4 K other pairs the entropy is summed in the pass. The best pair is merged first, each component at most once per
    pass.

    References
    ----------
    .. [1] Hughes, M. C. and Sudderth, E. B. (2013). Memoized online variational inference for Dirichlet process
           mixture models. Advances in Neural Information Processing Systems 26.

    Examples
    --------
    >>> import stickbreak as sb
    >>> sb.Merge()
    Merge()
    """


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Delete(Move):
    """Deletes: remove a component and give its rows to the others.

    Candidates are the `candidates` smallest components that at most 10,000 rows share. Their rows go to the other
    components in two local and global steps. The component is removed if the bound is then higher. After a failure it
    waits as in `Birth`.

    Parameters
    ----------
    candidates : int
        Number of components to try in a pass, at least 1.

    Raises
    ------
    InvalidType, InvalidArgument
        A parameter has a type or a value that is not allowed.

    Examples
    --------
    >>> import stickbreak as sb
    >>> sb.Delete()
    Delete(candidates=10)
    """

    candidates: int = 10


# The default moves of a fit.
USUAL: tuple[Move, ...] = (Birth(), Merge(), Delete())


def usual_moves(model: Model) -> tuple[Move, ...]:
    """Return the usual moves, or no moves if the model does not support them."""
    return USUAL if model._takes_moves else ()
