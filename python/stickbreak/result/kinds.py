"""Chooses the class of a result from the state of the core."""

from typing import Any

from stickbreak._core import FitState
from stickbreak.io import files
from stickbreak.model.mixture import Mixture
from stickbreak.model.model import Model, kind_of
from stickbreak.model.topic_model import TopicModel
from stickbreak.result.fit import Fit
from stickbreak.result.topic_fit import TopicFit

_FITS: dict[type[Model], type[Fit] | type[TopicFit]] = {Mixture: Fit, TopicModel: TopicFit}


def fit_of(state: FitState, **more: Any) -> Fit | TopicFit:
    """Return the fit of a state; `more` holds further arguments of its class."""
    return _FITS[kind_of(state.process[0])](state, **more)


def fit_of_parts(header: files.Header, arrays: files.Arrays) -> Fit | TopicFit:
    """Return the fit stored in a file."""
    state = header["state"]
    return _FITS[kind_of(state.get("process") if isinstance(state, dict) else None)]._from_parts(header, arrays)
