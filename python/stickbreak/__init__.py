"""Dirichlet-process mixtures on millions of rows.

A model says what the data are made of, an algorithm says how to find it, and `fit` finds it:

>>> import numpy as np
>>> import stickbreak as sb
>>> X = np.random.default_rng(0).normal(size=(200, 2))
>>> model = sb.Mixture(likelihood=sb.Gaussian(), process=sb.DirichletProcess(concentration=1.0))
>>> fit = sb.fit(model, X, sb.Memoized(batches=2, sparsity=4), n_components=5, seed=0)
>>> fit.predict(X).shape
(200,)
"""

from stickbreak._core import __version__
from stickbreak.algorithms import Full, Memoized
from stickbreak.checkpoints import Checkpoint
from stickbreak.errors import (
    CheckpointError,
    ConversionWarning,
    InternalError,
    InvalidArgument,
    InvalidType,
    ModelFileError,
    NotSupported,
    NumericalError,
    SourceError,
    StickbreakError,
)
from stickbreak.fitting import fit
from stickbreak.history import Record, StopReason
from stickbreak.likelihoods import Gaussian, ZeroMeanGaussian
from stickbreak.model import Mixture
from stickbreak.processes import DirichletProcess, FiniteDirichlet
from stickbreak.results import Fit, load

__all__ = [
    "Checkpoint",
    "CheckpointError",
    "ConversionWarning",
    "DirichletProcess",
    "FiniteDirichlet",
    "Fit",
    "Full",
    "Gaussian",
    "InternalError",
    "InvalidArgument",
    "InvalidType",
    "Memoized",
    "Mixture",
    "ModelFileError",
    "NotSupported",
    "NumericalError",
    "Record",
    "SourceError",
    "StickbreakError",
    "StopReason",
    "ZeroMeanGaussian",
    "__version__",
    "fit",
    "load",
]
