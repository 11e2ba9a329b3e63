"""What components expect of columns: moments of numbers, and quantities of every kind of column beside all rows."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stickbreak import checks
from stickbreak.io.levels import shown
from stickbreak.model.counts import NegativeBinomial
from stickbreak.model.likelihoods import Likelihood
from stickbreak.plot import canvas
from stickbreak.result.display import mean_and_deviation
from stickbreak.result.fit import Fit

Kind: TypeAlias = Literal["amount", "count", "flag", "category"]
Floats: TypeAlias = NDArray[np.float64]

_KINDS: dict[str, Kind] = {"real": "amount", "centred": "amount", "counts": "count", "binary": "flag"}
# Maximum number of levels of a column, those with the largest probabilities.
_MOST_LEVELS = 12
# Relative rounding of a mean.
_ROUNDING = 16.0 * np.finfo(np.float64).eps


class Quantity(NamedTuple):
    """A number that each component expects of a row: the mean of a column, or the probability of one of its values."""

    name: str
    kind: Kind
    is_probability: bool
    # One for each component.
    values: Floats
    deviations: Floats
    # Of all rows under the mixture. The deviation is 0 if it is within the rounding of the values.
    mean: float
    deviation: float

    @property
    def distances(self) -> Floats:
        """How far each component is from all rows, in standard deviations of all rows."""
        away: Floats = self.values - self.mean
        return away / self.deviation if self.deviation > 0.0 else np.zeros_like(away)

    def text(self, component: int) -> str:
        """Return the value under a component, with its standard deviation unless it is a probability."""
        return self._text(self.values[component], self.deviations[component])

    def short_text(self, component: int | None = None) -> str:
        """Return the value under a component, or of all rows."""
        found = (
            (self.mean, self.deviation) if component is None else (self.values[component], self.deviations[component])
        )
        return self._text(*map(float, found)).partition(" ±")[0]

    def _text(self, value: float, deviation: float) -> str:
        if not self.is_probability:
            return mean_and_deviation(value, deviation)
        return f"{100.0 * value:.{3 if value >= 0.01 else 2}g}%"


def quantities(fit: Fit, component: int | None = None) -> list[Quantity]:
    """Return the quantities of all columns, in the order of the columns.

    Columns of categories have one for each of their most probable levels, under this `component` or any. Of two levels
    they have the more probable one.
    """
    found: list[tuple[int, Quantity]] = []
    for columns, part, own in _parts(fit):
        if part._domain == "codes":
            found += [
                (columns[place], each)
                for place, table in enumerate(np.moveaxis(own["probabilities"], 1, 0))
                for each in _of_levels(fit, columns[place], table, component)
            ]
            continue
        means, spread = _moments(part, own, (fit.n_components, len(columns)))
        variances = spread if spread.ndim == 2 else np.diagonal(spread, axis1=1, axis2=2)
        mean, deviation = _overall(fit, means, variances)
        for place, column in enumerate(columns):
            word, numbers = fit._word(column), (means[:, place], variances[:, place] ** 0.5)
            name = canvas.title(fit, column) + ("" if word is None else f" = {canvas.text(word)}")
            both = float(mean[place]), float(deviation[place])
            found.append((column, Quantity(name, _KINDS[part._domain], "probabilities" in own, *numbers, *both)))
    return [each for _, each in sorted(found, key=lambda pair: pair[0])]


def moments(fit: Fit, columns: Sequence[int]) -> tuple[Floats, Floats]:
    """Return the means (K, d) and the covariances (K, d, d) of rows of the components, at `Fit.point_estimates`.

    Raises
    ------
    NotSupported
        A column holds codes, which have no meaningful means.
    """
    k, d = fit.n_components, len(columns)
    means, covariances = np.zeros((k, d)), np.zeros((k, d, d))
    places = {column: place for place, column in enumerate(columns)}
    for block, part, own in _parts(fit):
        pairs = [(places[column], inside) for inside, column in enumerate(block) if column in places]
        if not pairs:
            continue
        to, of = (np.array(each) for each in zip(*pairs, strict=True))
        if part._domain == "codes":
            raise of_codes(fit, columns[to[0]])
        centres, spread = _moments(part, own, (k, len(block)))
        means[:, to] = centres[:, of]
        if spread.ndim == 3:
            covariances[:, to[:, None], to] = spread[:, of[:, None], of]
        else:
            covariances[:, to, to] = spread[:, of]
    return means, covariances


def tails(fit: Fit, columns: Sequence[int]) -> list[float]:
    """Return the degrees of freedom of each block with some of these columns; infinity for rows without tails."""
    wanted = set(columns)
    return [getattr(part, "tail_dof", np.inf) for block, part, _ in _parts(fit) if wanted.intersection(block)]


def of_codes(fit: Fit, column: int) -> Exception:
    """Return the error for a picture that needs means, and a column of categories."""
    reason, instead = "codes have no means", "plot.card or plot.profiles"
    if fit.model.likelihood._domain == "codes":
        return checks.not_supported("fit", f"a fit of {type(fit.model.likelihood).__name__}", reason, instead)
    found = f"the column {checks.quote(canvas.name(fit, column))} of categories"
    return checks.not_supported("column", found, reason, f"another column, or {instead}")


def domains(fit: Fit) -> tuple[str, ...]:
    """Return the domain of each column."""
    found: tuple[str, ...] = fit._model.likelihood._domains(None, fit._state.dimension)
    return found


def _parts(fit: Fit) -> Iterator[tuple[Sequence[int], Likelihood, dict[str, Any]]]:
    """Yield the blocks of a fit: their columns, their likelihood, and their point estimates."""
    for columns, part, own in fit._model.likelihood._parts(fit._state.point_estimates):
        yield range(fit._state.dimension) if columns is None else columns, part, own


def _moments(part: Likelihood, own: dict[str, Any], shape: tuple[int, int]) -> tuple[Floats, Floats]:
    """Return the means (K, d), and the variances (K, d) or the covariances (K, d, d), of a block of numbers."""
    k, d = shape
    if getattr(part, "exposure", None) is not None:
        reason = "the means of rows depend on their exposures"
        raise checks.not_supported("exposure", "this picture of a fit with an exposure", reason, "another picture")
    if "rate" in own:
        return own["rate"], own["rate"]
    if "probabilities" in own:
        return own["probabilities"], own["probabilities"] * (1.0 - own["probabilities"])
    mean = own.get("mean", np.zeros(shape))
    if "covariance" in own:
        return mean, own["covariance"]
    if isinstance(part, NegativeBinomial):
        return mean, part._variances(mean)
    if "variance" in own:
        variance = own["variance"]
        return mean, np.broadcast_to(variance if variance.ndim == 2 else variance[:, None], shape)
    known: Any = part
    return mean, np.broadcast_to(known.covariance, (k, d, d))


def _overall(fit: Fit, means: Floats, variances: Floats) -> tuple[Floats, Floats]:
    """Return the means and the standard deviations of all rows under the mixture, shape (D,) each."""
    weights = fit.weights / fit.weights.sum()
    # Sums of differences: a weighted sum of equal values is rounded.
    mean = means[0] + weights @ (means - means[0])
    spread = np.sqrt(weights @ variances + weights @ (means - mean) ** 2)
    spread[spread <= _ROUNDING * abs(means).max(axis=0)] = 0.0
    return mean, spread


def _of_levels(fit: Fit, column: int, table: Floats, component: int | None) -> Iterator[Quantity]:
    """Yield the probabilities of the levels of a column, given those (K, L) of all levels."""
    largest = table.max(axis=0) if component is None else table[component]
    n_levels = int((table > 0.0).any(axis=0).sum())
    best = np.argsort(-largest, kind="stable")[: 1 if n_levels == 2 else min(n_levels, _MOST_LEVELS)]
    levels = fit._levels[column] if fit._levels else None
    chosen = table[:, np.sort(best)]
    mean, deviation = _overall(fit, chosen, chosen * (1.0 - chosen))
    for place, level in enumerate(np.sort(best).tolist()):
        name = f"{canvas.title(fit, column)} = {canvas.text(level if levels is None else shown(level, levels))}"
        of_level = chosen[:, place]
        deviations = np.sqrt(of_level * (1.0 - of_level))
        yield Quantity(name, "category", True, of_level, deviations, float(mean[place]), float(deviation[place]))
