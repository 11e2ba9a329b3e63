"""Draws of chains: what callbacks get, and the arrays of a trace."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stickbreak import checks
from stickbreak.io import files
from stickbreak.io.requests import Specification


@dataclass(frozen=True, kw_only=True, slots=True)
class Draw:
    """One draw of a chain, as passed to callbacks of `sample`.

    Parameters
    ----------
    chain : int
        Index of the chain, from 0.
    index : int
        Index of the draw, from 0.
    seconds : float
        Time since the chains began.
    log_joint : float
        log p(X, partition | hyper-parameters), in nats.
    n_clusters : int
        Number of clusters.
    """

    chain: int
    index: int
    seconds: float
    log_joint: float
    n_clusters: int

    @classmethod
    def _from_core(cls, event: dict[str, Any]) -> "Draw":
        return cls(
            chain=event["run"],
            index=event["draw"],
            seconds=event["seconds"],
            log_joint=event["log_joint"],
            n_clusters=event["n_clusters"],
        )


class Proposals(NamedTuple):
    """Proposals of one kind: number made, accepted, and decided by a finite ratio, and the sum of log ratios."""

    proposed: int
    accepted: int
    judged: int = 0
    log_ratio: float = 0.0


class ChainsStopped(StrEnum):
    """Why the chains of `sample` ended."""

    DRAWS = "draws"
    """All draws that were asked for were made."""
    UNTIL = "until"
    """There are as many effective draws, and chains agree as much, as `Until` asks for."""
    MAX_SECONDS = "max_seconds"
    """The time was up."""
    INTERRUPTED = "interrupted"
    """Ctrl-C was pressed."""
    CALLBACK = "callback"
    """A callback asked to stop."""
    ERROR = "error"
    """A sweep failed; the error that was raised has the draws so far."""


@dataclass(frozen=True)
class Ran:
    """How chains ran; files keep it."""

    sampler: Specification
    # The seed of the run of each chain.
    seeds: tuple[int, ...]
    # Of each chain, what it started from.
    starts: tuple[str, ...]
    warmup: int
    thin: int
    # Number of draws of each chain that were asked for, and why there are no more.
    asked: int
    # Of the fit from which chains started, or that estimated parameters.
    fit_seconds: float
    # Its number of components with rows, and what it says of copies and rounded values, which chains take for exact.
    fit_components: int = 0
    repeats: str = ""
    stop_reason: ChainsStopped = ChainsStopped.DRAWS
    # Of the rows; 0 in older files.
    fingerprint: int = 0
    # By how many draws, which `state` has, the first of the chains is ahead.
    ahead: int = 0
    # Number of sweeps of `BlockedGibbs`, and of those with rows in the last tenth of its components.
    last_tenth: tuple[int, int] = (0, 0)
    # Where the chains ended, from the core; None if they cannot go on.
    state: bytes | None = None

    def to_header(self) -> files.Header:
        """Return what a header keeps: all but the state."""
        found = asdict(self)
        del found["state"]
        return found

    @classmethod
    def of_file(cls, header: object, state: NDArray[Any] | None, chains: int) -> "Ran":
        """Read the header, and refuse an inconsistent one."""
        found = dict(checks.instance("ran", header, dict, "an object"))
        name, parameters = found["sampler"]
        whole = [found[key] for key in ("warmup", "thin", "asked")] + [*found["seeds"], *found["last_tenth"]]
        whole += [found.get(key, 0) for key in ("fit_components", "fingerprint", "ahead")]
        words = [name, found["stop_reason"], *found["starts"], found.get("repeats", "")]
        fits = all(isinstance(number, int) and number >= 0 for number in whole) and isinstance(parameters, dict)
        fits = fits and all(isinstance(word, str) for word in words) and isinstance(found["fit_seconds"], float)
        fits = fits and len(found["seeds"]) == len(found["starts"]) == chains and len(found["last_tenth"]) == 2
        fits = fits and (state is None or (state.dtype == np.uint8 and state.ndim == 1))
        if not fits:
            raise ValueError("a run of chains with inconsistent parts")
        tuples = {key: tuple(found[key]) for key in ("seeds", "starts", "last_tenth")}
        sampler = (name, parameters)
        known = {**found, **tuples, "sampler": sampler, "stop_reason": ChainsStopped(found["stop_reason"])}
        return cls(**known, state=None if state is None else state.tobytes())


@dataclass(frozen=True)
class Chains:
    """The arrays of all chains, from the core or from a file; `sizes` of all draws one after another."""

    partitions: NDArray[np.int32]
    log_joint: NDArray[np.float64]
    n_clusters: NDArray[np.int64]
    sizes: NDArray[np.int64]
    hyperparameters: dict[str, NDArray[np.float64]]
    seconds: NDArray[np.float64]
    proposals: dict[str, Proposals]
    kept_rows: NDArray[np.int64] | None = None
    exact: bool = True
    # None in older files.
    ran: Ran | None = None

    def __post_init__(self) -> None:
        for array in self._arrays().values():
            array.flags.writeable = False

    @property
    def n_rows(self) -> int:
        """The number of rows of the data."""
        return int(self.sizes[: self.starts[1]].sum())

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """The place in `sizes` of the first cluster of each draw, followed by their number."""
        return np.array([0, *accumulate(self.n_clusters.ravel().tolist())])

    @cached_property
    def largest(self) -> NDArray[np.int64]:
        """The number of rows of the largest cluster of each draw, shape (chains, draws)."""
        found = np.array([sizes.max() for sizes in self.each()]).reshape(self.n_clusters.shape)
        found.flags.writeable = False
        return found

    def each(self) -> Iterator[NDArray[np.int64]]:
        """Yield the sizes of the clusters of each draw."""
        for first, last in pairwise(self.starts.tolist()):
            yield self.sizes[first:last]

    def _arrays(self) -> files.Arrays:
        found: files.Arrays = {
            "partitions": self.partitions,
            "log_joint": self.log_joint,
            "n_clusters": self.n_clusters,
            "sizes": self.sizes,
            "seconds": self.seconds,
        }
        found |= {f"hyperparameters.{name}": array for name, array in self.hyperparameters.items()}
        if self.kept_rows is not None:
            found["kept_rows"] = self.kept_rows
        return found

    def to_parts(self) -> tuple[files.Header, files.Arrays]:
        """Return header and arrays for a file."""
        header: files.Header = {
            "proposals": {name: list(found) for name, found in self.proposals.items()},
            "hyperparameters": list(self.hyperparameters),
            "exact": self.exact,
        }
        found = self._arrays()
        if self.ran is not None:
            header["ran"] = self.ran.to_header()
            if self.ran.state is not None:
                found["state"] = np.frombuffer(self.ran.state, dtype=np.uint8)
        return header, found

    @classmethod
    def from_parts(cls, header: files.Header, found: files.Arrays, n_rows: int | None) -> "Chains":
        """Read chains from the header and arrays of a file with `n_rows` rows, and refuse inconsistent ones."""
        proposals = checks.instance("proposals", header["proposals"], dict, "an object")
        prefix = "hyperparameters."
        # Older files do not name them.
        held = [name.removeprefix(prefix) for name in found if name.startswith(prefix)]
        names = checks.instance("hyperparameters", header.get("hyperparameters", held), list, "a list")
        chains = cls(
            partitions=found["partitions"],
            log_joint=found["log_joint"],
            n_clusters=found["n_clusters"],
            sizes=found["sizes"] if "sizes" in found else _counted(found["partitions"]),
            hyperparameters={name: found[f"{prefix}{name}"] for name in names},
            seconds=found["seconds"],
            proposals={name: _proposals(name, counts) for name, counts in proposals.items()},
            kept_rows=found.get("kept_rows"),
            exact=checks.flag("exact", header.get("exact", True)),
            ran=Ran.of_file(header["ran"], found.get("state"), len(found["seconds"])) if "ran" in header else None,
        )
        _check(chains, n_rows)
        return chains


def _proposals(name: str, found: object) -> Proposals:
    """Read the counts of one kind of proposal from a file; older files have only the first two."""
    counts = checks.instance(f"proposals[{name!r}]", found, list, "a list")
    fits = (isinstance(count, float) or (isinstance(count, int) and abs(count) < 2**63) for count in counts)
    if len(counts) not in (2, 4) or not all(fits):
        raise checks.invalid_argument(f"proposals[{name!r}]", repr(counts), "two or four numbers")
    return Proposals(*counts)


def _counted(partitions: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return the sizes of the clusters of all draws, for files that lack them."""
    labels = partitions.reshape(-1, partitions.shape[-1])
    if labels.size == 0 or labels.min() < 0 or labels.max() >= labels.shape[-1]:
        raise ValueError("labels that are not those of draws")
    return np.concatenate([np.bincount(draw) for draw in labels]).astype(np.int64)


def _check(chains: Chains, n_rows: int | None) -> None:
    """Refuse inconsistent arrays from a file."""
    shape = chains.log_joint.shape
    numbers = (chains.log_joint, chains.seconds, *chains.hyperparameters.values())
    fits = len(shape) == 2 and 0 not in shape and chains.partitions.ndim == 3
    fits &= all(array.shape == shape for array in (chains.n_clusters, *chains.hyperparameters.values()))
    fits &= chains.seconds.shape == shape[:1] and chains.partitions.shape[:2] == shape
    fits &= chains.partitions.dtype == np.int32 and all(array.dtype == np.float64 for array in numbers)
    fits &= all(array.dtype == np.int64 and array.size for array in (chains.n_clusters, chains.sizes))
    fits = fits and bool((chains.n_clusters > 0).all()) and chains.sizes.shape == (chains.starts[-1],)
    if not fits:
        raise ValueError("arrays of draws with inconsistent shapes or types")
    n = chains.n_rows if n_rows is None else n_rows
    kept = chains.kept_rows
    n_kept = n if kept is None else len(kept)
    fits = n_kept > 0 and chains.partitions.shape[-1] == n_kept and bool((chains.sizes > 0).all())
    fits = fits and all(sizes.sum() == n for sizes in chains.each())
    if kept is not None:
        fits = fits and kept.dtype == np.int64 and kept.ndim == 1 and len(np.unique(kept)) == n_kept
        fits = fits and kept.min() >= 0 and kept.max() < n
    if not fits:
        raise ValueError("clusters that do not match the rows")
    labels = chains.partitions
    fits = labels.min() >= 0 and bool((labels.max(-1) < chains.n_clusters).all())
    if kept is None:
        fits = fits and np.array_equal(_counted(labels), chains.sizes)
    if not fits:
        raise ValueError("labels that do not match the clusters")
