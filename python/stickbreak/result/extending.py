"""Longer chains, and chains of several runs as one trace."""

from dataclasses import replace
from functools import reduce
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from stickbreak import _core, checks
from stickbreak.errors import Advice, CheckpointError
from stickbreak.io import arrays
from stickbreak.io.requests import ChainPlan
from stickbreak.result.advising_chains import warn_of_draws
from stickbreak.result.draws import Chains, ChainsStopped, Proposals, Ran
from stickbreak.result.room import room_of_draws


class Silent:
    """Receives the events of chains and shows none."""

    listens, in_turn = False, False
    checkpoint_every: float | None = None
    checkpoint: object | None = None

    def observe(self, event: dict[str, Any], /) -> bool:
        """Go on."""
        return False


def chains_of(found: dict[str, Any], room: NDArray[np.int32], n_chains: int, ran: Ran) -> Chains:
    """Return the chains that the core has run, with their draws in `room`."""
    draws, names = found["draws"], found["names"]
    traced = found["traced"].reshape(n_chains, draws, len(names))
    proposals = {name: Proposals(*counts) for name, counts in found["proposals"].items()}
    last_tenth = proposals.pop("last_tenth", Proposals(0, 0))
    state = found["state"]
    return Chains(
        partitions=room[:, :draws] if draws == room.shape[1] else room[:, :draws].copy(),
        log_joint=found["log_joint"].reshape(n_chains, draws),
        n_clusters=found["n_clusters"].reshape(n_chains, draws),
        sizes=found["sizes"],
        hyperparameters={name: traced[..., column].copy() for column, name in enumerate(names)},
        seconds=found["seconds"],
        proposals=proposals,
        ran=replace(
            ran,
            last_tenth=(last_tenth.proposed, last_tenth.accepted),
            stop_reason=ChainsStopped(found["stopped"]),
            ahead=found["ahead"],
            state=None if state is None else state.tobytes(),
        ),
    )


class Extending:
    """`Trace.extend`."""

    _chains: Chains
    _sampled: tuple[_core.SampledModel, arrays.Rows] | None

    def _with_chains(self, chains: Chains) -> Self:
        raise NotImplementedError

    def advice(self) -> tuple[Advice, ...]:
        """Return what speaks against trusting these draws."""
        raise NotImplementedError

    def extend(self, draws: int, *, max_seconds: float | None = None, threads: int | None = None) -> Self:
        """Return a trace with more draws of the same chains, which go on from where they ended.

        It has the draws of one longer run. This trace stays as it is.

        Parameters
        ----------
        draws : int
            Number of further draws of each chain, at least 1. Where a run was cut short, one chain may have made more
            draws than another: then at least that many.
        max_seconds : float, optional
            Start no sweep after this time, and return the draws so far.
        threads : int, optional
            The number of threads. Default: one for every core.

        Returns
        -------
        Trace
            The longer trace. `stop_reason` is that of the new draws.

        Raises
        ------
        InvalidType, InvalidArgument
            An argument is not as described.
        NotSupported
            The chains cannot go on: the trace has no rows, was joined by `concat`, is from a file of an older version,
            or its run ended within a sweep, by an error or Ctrl-C.
        NumericalError
            As in `sample`.

        Warns
        -----
        ConvergenceWarning, TruncationWarning
            As in `sample`. All draws count, old and new.

        Examples
        --------
        >>> import numpy as np
        >>> import stickbreak as sb
        >>> X = np.random.default_rng(0).normal(size=(20, 1))
        >>> model = sb.Mixture(likelihood=sb.Gaussian())
        >>> short = sb.sample(model, X, draws=50, warmup=10, chains=2)
        >>> long = sb.sample(model, X, draws=80, warmup=10, chains=2)
        >>> bool((short.extend(30).partitions == long.partitions).all())
        True
        """
        ran, chains = self._chains.ran, self._chains
        more = checks.integer("draws", draws, minimum=1)
        if self._sampled is None or ran is None or ran.state is None:
            reason = "it does not know where its chains ended" if self._sampled else "it has no rows"
            raise checks.not_supported(
                "trace", "to extend this trace", reason, "one of `sample` that was not cut short"
            )
        if more < ran.ahead:
            allowed = f"at least {ran.ahead}, by which a chain is ahead of the slowest one"
            raise checks.invalid_argument("draws", str(more), allowed)
        model, rows = self._sampled
        n_chains, n_before = chains.log_joint.shape
        plan: ChainPlan = {
            "sampler": ran.sampler,
            "draws": more,
            "warmup": ran.warmup + n_before * ran.thin,
            "thin": ran.thin,
            "chains": n_chains,
            "seed": ran.seeds[0],
            "max_seconds": None
            if max_seconds is None
            else checks.non_negative("max_seconds", max_seconds, ", or None"),
            "keep_rows": None if chains.kept_rows is None else chains.kept_rows.astype(np.uint32),
            "threads": checks.threads(threads),
            "until": None,
            "resumed": ran.state,
        }
        room = room_of_draws(n_chains, more, chains.partitions.shape[-1])
        try:
            found, _ = _core.sample(
                rows,
                likelihood=model.likelihood,
                process=model.process,
                plan=plan,
                init=["single"],
                partitions=room,
                observer=Silent(),
                known=model,
            )
        except CheckpointError as error:
            raise checks.not_supported("trace", "to extend this trace", str(error), "the same version") from error
        added = chains_of(found, room, n_chains, ran)
        trace = self._with_chains(_behind(chains, added, more))
        warn_of_draws(trace.advice(), stacklevel=2)
        if found["error"] is not None:
            found["error"].trace = trace
            raise found["error"]
        return trace


def _behind(first: Chains, second: Chains, asked: int) -> Chains:
    """Return the chains of the first with those of the second behind them; `asked` new draws were asked for."""
    behind = {
        name: np.concatenate([values, second.hyperparameters[name]], axis=1)
        for name, values in first.hyperparameters.items()
    }
    sizes = [_sizes(one, chain) for chain in range(len(first.seconds)) for one in (first, second)]
    if first.ran is None or second.ran is None:
        raise ValueError("chains without their run")
    ran = replace(
        second.ran,
        asked=first.log_joint.shape[1] + asked,
        last_tenth=_sum(first.ran.last_tenth, second.ran.last_tenth),
    )
    return replace(
        first,
        partitions=np.concatenate([first.partitions, second.partitions], axis=1),
        log_joint=np.concatenate([first.log_joint, second.log_joint], axis=1),
        n_clusters=np.concatenate([first.n_clusters, second.n_clusters], axis=1),
        sizes=np.concatenate(sizes),
        hyperparameters=behind,
        seconds=first.seconds + second.seconds,
        proposals=_added(first.proposals, second.proposals),
        ran=ran,
    )


def _sizes(chains: Chains, chain: int) -> NDArray[np.int64]:
    """Return the sizes of the clusters of all draws of a chain."""
    draws = chains.log_joint.shape[1]
    return chains.sizes[chains.starts[chain * draws] : chains.starts[(chain + 1) * draws]]


def _added(first: dict[str, Proposals], second: dict[str, Proposals]) -> dict[str, Proposals]:
    none = Proposals(0, 0)
    names = dict.fromkeys([*first, *second])
    return {name: _both(first.get(name, none), second.get(name, none)) for name in names}


def _both(a: Proposals, b: Proposals) -> Proposals:
    return Proposals(a.proposed + b.proposed, a.accepted + b.accepted, a.judged + b.judged, a.log_ratio + b.log_ratio)


def _sum(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    return one[0] + other[0], one[1] + other[1]


def side_by_side(all_chains: list[Chains], all_runs: list[Ran]) -> Chains:
    """Return the chains of several runs."""
    first, stops = all_runs[0], [ran.stop_reason for ran in all_runs]
    ran = replace(
        first,
        seeds=tuple(seed for one in all_runs for seed in one.seeds),
        starts=tuple(start for one in all_runs for start in one.starts),
        asked=max(one.asked for one in all_runs),
        # The first that was cut short, if any was.
        stop_reason=next((stop for stop in stops if stop not in (ChainsStopped.DRAWS, ChainsStopped.UNTIL)), stops[0]),
        fit_seconds=sum(one.fit_seconds for one in all_runs),
        last_tenth=reduce(_sum, (one.last_tenth for one in all_runs)),
        state=None,
    )
    return replace(
        all_chains[0],
        partitions=np.concatenate([one.partitions for one in all_chains]),
        log_joint=np.concatenate([one.log_joint for one in all_chains]),
        n_clusters=np.concatenate([one.n_clusters for one in all_chains]),
        sizes=np.concatenate([one.sizes for one in all_chains]),
        hyperparameters={
            name: np.concatenate([one.hyperparameters[name] for one in all_chains])
            for name in all_chains[0].hyperparameters
        },
        seconds=np.concatenate([one.seconds for one in all_chains]),
        proposals=reduce(_added, (one.proposals for one in all_chains)),
        ran=ran,
    )
