"""Estimators that a refused `fit` leaves as they were."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# What scikit-learn's validation stores before there is a fit.
_VALIDATED = ("n_features_in_", "feature_names_in_")


class Refusing:
    """An estimator that stores its fit in `fit_`, and is fitted once it has one."""

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "fit_")

    @contextmanager
    def _unchanged_if_refused(self) -> Iterator[None]:
        """Restore what validation has stored if the fit fails."""
        attributes: dict[str, Any] = vars(self)
        before = {name: attributes[name] for name in _VALIDATED if name in attributes}
        try:
            yield
        except BaseException:
            for name in _VALIDATED:
                attributes.pop(name, None)
            attributes.update(before)
            raise
