"""The model: an observation model and a prior on the weights."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, ClassVar, Self

from stickbreak import checks
from stickbreak.io.names import Names
from stickbreak.model.background import Background
from stickbreak.model.likelihoods import Likelihood
from stickbreak.model.model import Model
from stickbreak.model.processes import DirichletProcess, Process


@dataclass(frozen=True, repr=False)
class Mixture(Model):
    r"""A mixture model.

    .. math:: w \sim \text{process}, \quad z_n \sim \mathrm{Categorical}(w), \quad
              \phi_k \sim \text{base measure}, \quad x_n \sim F(\phi_{z_n})

    Parameters
    ----------
    likelihood : Gaussian, DiagonalGaussian, Multinomial, ... (any likelihood)
        F with its base measure.
    process : DirichletProcess, PitmanYor, FiniteDirichlet, ... (any process), optional
        The prior on the weights w. Default: `DirichletProcess()`.
    background : Background, optional
        A density for rows that belong to no component. Without one every row belongs to a component.

    Raises
    ------
    InvalidType
        `likelihood` is not a likelihood, `process` is not a process, or `background` is not a background.

    Examples
    --------
    >>> import stickbreak as sb
    >>> sb.Mixture(likelihood=sb.Gaussian(), process=sb.DirichletProcess(concentration=1.0))
    Mixture(likelihood=Gaussian(), process=DirichletProcess(concentration=1.0, truncation='nested'))
    """

    _has_documents: ClassVar[bool] = False
    _objective: ClassVar[str] = "variational"
    _min_rows: ClassVar[int] = 2
    _starts: ClassVar[tuple[str, ...]] = ("kmeans++", "random", "sequential")
    _fit: ClassVar[str] = "a Fit"

    likelihood: Likelihood
    _: KW_ONLY
    process: Process = field(default_factory=DirichletProcess)
    background: Background | None = None

    def __post_init__(self) -> None:
        checks.instance("likelihood", self.likelihood, Likelihood, "a likelihood, such as Gaussian()")
        process = checks.instance("process", self.process, Process, "a process, such as DirichletProcess()")
        if process._has_face("documents"):
            found, allowed = f"a Mixture with {type(process).__name__}", "a TopicModel, or a DirichletProcess"
            raise checks.not_supported("process", found, "its weights are those of documents", allowed)
        if self.background is not None:
            checks.instance("background", self.background, Background, "a Background, or None")

    @property
    def _background(self) -> dict[str, Any] | None:
        return None if self.background is None else self.background._to_core()[1]

    def _check_no_background(self, what: str) -> None:
        """Refuse a background for what does not have one."""
        if self.background is not None:
            reason = "a background is a part of variational fits alone"
            raise checks.not_supported("background", f"a background for {what}", reason, "background=None, or sb.fit")

    def __repr__(self) -> str:
        # Few mixtures have a background.
        parts = ["likelihood", "process"] + (["background"] if self.background is not None else [])
        return f"{type(self).__name__}({', '.join(f'{part}={getattr(self, part)!r}' for part in parts)})"

    def _placed(self, names: Names | None, n_columns: int) -> Self:
        """Return the same model with the positions of columns that its likelihood names."""
        return replace(self, likelihood=self.likelihood._placed(names, n_columns))

    def _with_levels(self, sizes: Sequence[int | None]) -> Self:
        """Return the same model with these numbers of levels where none are given."""
        return replace(self, likelihood=self.likelihood._with_levels(sizes))

    def _named(self, names: Names | None) -> Self:
        """Return the same model with the names of columns that its likelihood places."""
        return replace(self, likelihood=self.likelihood._named(names))

    @property
    def _hint_on_missing(self) -> str:
        if self.likelihood._supports("missing"):
            instead = 'use missing="marginalize"'
        elif self.likelihood._domain == "counts":
            instead = "write 0 where nothing was counted"
        else:
            instead = 'use missing="marginalize" and a likelihood such as DiagonalGaussian()'
        return f"leave such rows out, or {instead}"

    @classmethod
    def _from_core(
        cls,
        likelihood: tuple[str, dict[str, Any]],
        process: tuple[str, dict[str, Any]],
        background: dict[str, Any] | None = None,
    ) -> Self:
        behind = None if background is None else Background._of_core(background)
        return cls(Likelihood._from_core(*likelihood), process=Process._from_core(*process), background=behind)
