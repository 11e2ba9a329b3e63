"""Bayesian nonparametric mixtures and topic models on millions of rows.

A model says what the data are made of, an algorithm says how to find it, and `fit` finds it:

>>> import numpy as np
>>> import stickbreak as sb
>>> X = np.random.default_rng(0).normal(size=(200, 2))
>>> process = sb.DirichletProcess(concentration=1.0)
>>> model = sb.Mixture(likelihood=sb.Gaussian(), process=process)
>>> fit = sb.fit(model, X, sb.Memoized(batches=2, sparsity=4), n_components=5, seed=0)
>>> fit.predict(X).shape
(200,)
"""

from stickbreak import interrupts  # noqa: F401

# isort: split
# What takes time to import.
from stickbreak import plot
from stickbreak._core import __version__
from stickbreak.errors import (
    Advice,
    BiasWarning,
    CheckpointError,
    ConvergenceWarning,
    ConversionWarning,
    EmptyRowsWarning,
    InternalError,
    InvalidArgument,
    InvalidType,
    ModelFileError,
    NotSupported,
    NumericalError,
    SourceError,
    SparsityWarning,
    StepSizeWarning,
    StickbreakError,
    SupportWarning,
    TruncationWarning,
    UnseenWordsWarning,
)
from stickbreak.io.docword import read_docword
from stickbreak.io.zeros import split_zeros
from stickbreak.model.background import Background
from stickbreak.model.beta import Beta
from stickbreak.model.columns import Columns
from stickbreak.model.counts import Bernoulli, Categorical, Multinomial, NegativeBinomial, Poisson
from stickbreak.model.gamma import Gamma
from stickbreak.model.likelihoods import (
    DiagonalGaussian,
    Gaussian,
    KnownCovarianceGaussian,
    SphericalGaussian,
    StudentT,
    ZeroMeanGaussian,
)
from stickbreak.model.mixture import Mixture
from stickbreak.model.processes import (
    DirichletProcess,
    FiniteDirichlet,
    LatentDirichlet,
    MixtureOfFiniteMixtures,
    NormalizedGeneralizedGamma,
    PitmanYor,
)
from stickbreak.model.topic_model import TopicModel
from stickbreak.result.agreement import partition_distance
from stickbreak.result.combining import Clusters, Join
from stickbreak.result.comparing import compare
from stickbreak.result.densities import Density
from stickbreak.result.diagnosing import RunLength
from stickbreak.result.draws import ChainsStopped, Draw
from stickbreak.result.fit import Fit
from stickbreak.result.hierarchy import Hierarchy
from stickbreak.result.history import MoveReport, Record, RunnerUp, StopReason
from stickbreak.result.joining import concat
from stickbreak.result.labelling import LabelShare, label_shares
from stickbreak.result.loading import load
from stickbreak.result.mixing import DensityBand
from stickbreak.result.partitioning import CredibleBall, PointEstimate, SimilarityBlock
from stickbreak.result.support import Support
from stickbreak.result.topic_fit import TopicFit
from stickbreak.result.trace import Trace
from stickbreak.run.algorithms import Full, Memoized, Stochastic
from stickbreak.run.checkpoints import Checkpoint
from stickbreak.run.choosing import columns_for
from stickbreak.run.clustering import hierarchy
from stickbreak.run.fitting import fit
from stickbreak.run.instructions import force_instructions
from stickbreak.run.moves import Birth, Delete, Merge, Split
from stickbreak.run.priors import PriorSample, sample_prior
from stickbreak.run.samplers import BlockedGibbs, CollapsedGibbs, Slice, SplitMerge, TreeGuided
from stickbreak.run.sampling import sample
from stickbreak.run.stability import Stability, stability
from stickbreak.run.units import KdTree, Words
from stickbreak.run.until import Until
from stickbreak.run.validating import cross_validate

__all__ = [
    "Advice",
    "Background",
    "Bernoulli",
    "Beta",
    "BiasWarning",
    "Birth",
    "BlockedGibbs",
    "Categorical",
    "ChainsStopped",
    "Checkpoint",
    "CheckpointError",
    "Clusters",
    "CollapsedGibbs",
    "Columns",
    "ConvergenceWarning",
    "ConversionWarning",
    "CredibleBall",
    "Delete",
    "Density",
    "DensityBand",
    "DiagonalGaussian",
    "DirichletProcess",
    "Draw",
    "EmptyRowsWarning",
    "FiniteDirichlet",
    "Fit",
    "Full",
    "Gamma",
    "Gaussian",
    "Hierarchy",
    "InternalError",
    "InvalidArgument",
    "InvalidType",
    "Join",
    "KdTree",
    "KnownCovarianceGaussian",
    "LabelShare",
    "LatentDirichlet",
    "Memoized",
    "Merge",
    "Mixture",
    "MixtureOfFiniteMixtures",
    "ModelFileError",
    "MoveReport",
    "Multinomial",
    "NegativeBinomial",
    "NormalizedGeneralizedGamma",
    "NotSupported",
    "NumericalError",
    "PitmanYor",
    "PointEstimate",
    "Poisson",
    "PriorSample",
    "Record",
    "RunLength",
    "RunnerUp",
    "SimilarityBlock",
    "Slice",
    "SourceError",
    "SparsityWarning",
    "SphericalGaussian",
    "Split",
    "SplitMerge",
    "Stability",
    "StepSizeWarning",
    "StickbreakError",
    "Stochastic",
    "StopReason",
    "StudentT",
    "Support",
    "SupportWarning",
    "TopicFit",
    "TopicModel",
    "Trace",
    "TreeGuided",
    "TruncationWarning",
    "UnseenWordsWarning",
    "Until",
    "Words",
    "ZeroMeanGaussian",
    "__version__",
    "columns_for",
    "compare",
    "concat",
    "cross_validate",
    "fit",
    "force_instructions",
    "hierarchy",
    "label_shares",
    "load",
    "partition_distance",
    "plot",
    "read_docword",
    "sample",
    "sample_prior",
    "split_zeros",
    "stability",
]
