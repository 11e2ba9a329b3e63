"""What a run asks of a model: the properties in which mixtures and topic models differ."""

from collections.abc import Sequence
from typing import Any, ClassVar, Self

from stickbreak.io.names import Names
from stickbreak.model.likelihoods import Likelihood
from stickbreak.model.processes import Process
from stickbreak.model.specification import REGISTRY


class Model:
    """Base of `Mixture` and `TopicModel`."""

    # Whether rows are documents, whose words are the units.
    _has_documents: ClassVar[bool]
    # What `fit` maximises by default.
    _objective: ClassVar[str]
    # Minimum number of rows of a fit.
    _min_rows: ClassVar[int]
    # The words and the fit that `init` may be.
    _starts: ClassVar[tuple[str, ...]]
    _fit: ClassVar[str]

    likelihood: Likelihood
    process: Process

    @property
    def _takes_moves(self) -> bool:
        """Whether moves can change the number of components. The core refuses moves for other models."""
        return self.likelihood._supports("moves") and self.process._supports("moves")

    @property
    def _hint_on_missing(self) -> str:
        """What to do about missing values."""
        raise NotImplementedError

    def _placed(self, names: Names | None, n_columns: int) -> Self:
        """Return the same model with the positions of columns that its likelihood names."""
        return self

    def _with_levels(self, sizes: Sequence[int | None]) -> Self:
        """Return the same model with these numbers of levels where none are given."""
        return self

    def _named(self, names: Names | None) -> Self:
        """Return the same model with the names of columns that its likelihood places."""
        return self

    @property
    def _background(self) -> dict[str, Any] | None:
        """The parameters of the background in the form of the core; None without one."""
        return None

    @classmethod
    def _from_core(
        cls,
        likelihood: tuple[str, dict[str, Any]],
        process: tuple[str, dict[str, Any]],
        background: dict[str, Any] | None = None,
    ) -> Self:
        """Make the model that the core describes."""
        raise NotImplementedError


def kind_of(process: object) -> type[Model]:
    """Return the class of the models with the process that the core calls `process`."""
    entry = REGISTRY["processes"].get(process) if isinstance(process, str) else None
    has_documents = entry is not None and "documents" in entry["faces"]
    return next(kind for kind in Model.__subclasses__() if kind._has_documents == has_documents)
