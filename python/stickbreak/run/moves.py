"""Moves: changes of the number of components between passes, each judged by the exact bound of all data.

To add a move, add one class here: its fields are the names that the core knows.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

from stickbreak import _core
from stickbreak.model.mixture import Mixture
from stickbreak.model.specification import Specification
from stickbreak.model.topic_model import TopicModel


class Move(Specification):
    """Base of all moves."""

    _family: ClassVar[str] = "moves"

    def _check(self) -> None:
        _core.check_move(*self._to_core())


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Birth(Move):
    r"""Births: fresh components in the place of one [1]_.

    A pass collects some rows of every component, from all batches. Before the next pass a small mixture of `fresh`
    parts is fitted to the rows of each, weighted up to the mass of the component. In that pass every row divides its
    share of the component between the two parts that explain it best, as if there were only these, or gives all of it
    to the best one where it would else have more components than `sparsity` lets it keep. So the change of the bound is
    known exactly at its end,

    .. math:: \Delta \mathcal L = \sum_j c(\lambda_0 + S_j) - c(\lambda_0 + S_k) - (J - 1) c(\lambda_0)
              + \sum_{i < j} G_{ij} + \mathcal L^*(N') - \mathcal L^*(N)

    where :math:`G_{ij}` is the entropy, in nats, of how rows divide their shares between parts i and j, and with
    parts joined as long as that gains. Parts that the collected rows themselves do not bear out are not tried. Where
    that is so of all of them, or where they turn out to be no gain, two halves are tried. Every component of at least
    two rows has its turn, the largest 100 at a time, whatever other moves are planned; after a failure it waits for 5
    passes, twice as many after each further one, or until its mass has changed by a tenth.

    Parameters
    ----------
    adoption : {"split", "pass"}
        How fresh components come in. "split": as said above; the bound never falls. "pass", as in [1]_: the parts of
        the largest 10 components that are ready are appended, the rows that they were made of are counted twice, and
        they compete with all components for the rows of a pass; then the copies are taken away again, fresh components
        that are not needed are merged, and if the bound is lower than it was before, everything is as it was. What
        loses its rows only in later passes stays, unless `Delete` is among the moves.
    max_subsample : int
        The most rows of a component that its fresh parts are made of, at least 4. Rows unlike all others can only be
        found if they are among these.
    threshold : float
        A row can be one of them if its responsibility is above this, from 0 on, below 1.
    fresh : int
        The most parts of a component, at least 2.

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
    """Splits of the search of accelerated variational Dirichlet-process mixtures: two halves in the place of one [1]_.

    As births with two parts, which start on either side of the plane through the mean across the leading principal
    component (for likelihoods without a free mean, or without covariances, by k-means++), of `candidates` components
    drawn by their masses; of those that gain the best one is split.

    Parameters
    ----------
    candidates : int
        How many components are tried in a pass, at least 1.

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
    r"""Merges: one component in the place of two [1]_.

    Exact from sums alone, :math:`\Delta \mathcal L = U_{ab} - G_{ab}`: what the marginal likelihoods and the weights
    gain, less the entropy :math:`G_{ab} \ge 0` that is lost where both share rows. Pairs with :math:`U_{ab} \le 0`
    cannot be merged and cost nothing; of the others, the best four times as many as there are components, the gaps are
    summed up in the pass. The best is merged first, each component once a pass.

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
    """Deletes: a component ends, and its rows are fitted to the others.

    The `candidates` smallest components that at most 10,000 rows have a share of. Each row that has one is dealt to the
    other components in two turns of local and global steps, and the component ends if the bound is higher then. A
    failure is remembered as in `Birth`.

    Parameters
    ----------
    candidates : int
        How many components are tried in a pass, at least 1.

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


def usual_moves(model: Mixture | TopicModel) -> tuple[Move, ...]:
    """Return the usual moves; none where the model does not take them."""
    return USUAL if model._takes_moves else ()
