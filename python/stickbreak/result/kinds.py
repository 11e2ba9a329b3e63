"""Chooses the class of a result from the state of the core."""

from typing import Any

from stickbreak._core import FitState
from stickbreak.io import files
from stickbreak.model.topic_model import is_of_documents
from stickbreak.result.fit import Fit
from stickbreak.result.topic_fit import TopicFit


def fit_of(state: FitState, **more: Any) -> Fit | TopicFit:
    """Return the fit of a state; `more` holds further arguments of its class."""
    return TopicFit(state, **more) if is_of_documents(state.process[0]) else Fit(state, **more)


def fit_of_parts(header: files.Header, arrays: files.Arrays) -> Fit | TopicFit:
    """Return the fit stored in a file."""
    state = header["state"]
    process = state.get("process") if isinstance(state, dict) else None
    kind = TopicFit if isinstance(process, str) and is_of_documents(process) else Fit
    return kind._from_parts(header, arrays)
