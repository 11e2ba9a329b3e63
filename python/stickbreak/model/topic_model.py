"""The topic model: documents whose words come from topics, which all documents share."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

from stickbreak import checks
from stickbreak.model.counts import Multinomial
from stickbreak.model.model import Model
from stickbreak.model.processes import Process

# The pseudo-counts of words.
_PSEUDO_COUNTS = {"range": (1e-9, 1e9), "allowed": "a number from 1e-9 to 1e9, or None"}


@dataclass(frozen=True)
class TopicModel(Model):
    r"""A topic model: a `Multinomial` over words with a process that has weights for every document.

    .. math:: \pi_d \sim \text{process}, \quad \phi_k \sim \mathrm{Dirichlet}(\lambda, \dots, \lambda), \quad
              z_{dn} \sim \mathrm{Categorical}(\pi_d), \quad x_{dn} \sim \mathrm{Categorical}(\phi_{z_{dn}})

    Its data are counts, a row for each document and a column for each word. `fit` returns a `TopicFit`.

    Parameters
    ----------
    process : LatentDirichlet
        The prior on the weights of the topics in every document.
    word_concentration : float or None
        :math:`\lambda`, 1e-9 to 1e9: the pseudo-count of every word in every topic. None starts from 0.1 and estimates
        it between passes, by the marginal likelihood of the words (mathematics 11.6).

    Raises
    ------
    InvalidType
        `process` is not a process, or `word_concentration` is neither a number nor None.
    InvalidArgument
        `word_concentration` is out of its range.
    NotSupported
        `process` has no weights for documents.

    Examples
    --------
    >>> import stickbreak as sb
    >>> sb.TopicModel(sb.LatentDirichlet(n_topics=20))
    TopicModel(process=LatentDirichlet(n_topics=20, concentration=0.5), word_concentration=0.1)
    """

    _has_documents: ClassVar[bool] = True
    _objective: ClassVar[str] = "map"
    _min_rows: ClassVar[int] = 1
    _starts: ClassVar[tuple[str, ...]] = ("kmeans++", "random")
    _fit: ClassVar[str] = "a TopicFit"

    process: Process
    _: KW_ONLY
    word_concentration: float | None = 0.1

    @property
    def _hint_on_missing(self) -> str:
        return "write 0 for words that do not occur"

    def __post_init__(self) -> None:
        process = checks.instance("process", self.process, Process, "a process, such as LatentDirichlet(n_topics=20)")
        if not process._has_face("documents"):
            found = f"a TopicModel with {type(process).__name__}"
            reason = "it has no weights for every document"
            raise checks.not_supported("process", found, reason, "LatentDirichlet(n_topics=20)")
        if self.word_concentration is not None:
            value = checks.within("word_concentration", self.word_concentration, _PSEUDO_COUNTS)
            object.__setattr__(self, "word_concentration", value)

    @property
    def likelihood(self) -> Multinomial:  # type: ignore[override]
        """The likelihood of the words: a `Multinomial` without its coefficient."""
        if self.word_concentration is None:
            return Multinomial(coefficient=False)
        return Multinomial(self.word_concentration, coefficient=False)

    @classmethod
    def _from_core(
        cls,
        likelihood: tuple[str, dict[str, Any]],
        process: tuple[str, dict[str, Any]],
        background: dict[str, Any] | None = None,
    ) -> Self:
        pseudo_counts = likelihood[1]["pseudo_counts"]
        word = float(pseudo_counts if isinstance(pseudo_counts, float) else pseudo_counts[0])
        return cls(Process._from_core(*process), word_concentration=word)
