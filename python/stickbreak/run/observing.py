"""Events between the core and Python during a fit, or while chains run."""

from collections.abc import Callable, Sequence
from typing import Any

from stickbreak.result.draws import Draw
from stickbreak.result.history import Record
from stickbreak.run.checkpoints import CheckpointFile, Resumed
from stickbreak.run.progress import ProgressBar, SweepBar

Callback = Callable[[Any], object]


class Observer:
    """Passes events of the core to the progress bar, the callbacks and the checkpoint file.

    Parameters
    ----------
    callbacks : sequence of callables
        Each is called with the record of every pass, or with every draw.
    bar : ProgressBar or SweepBar, optional
        The progress bar.
    file : CheckpointFile, optional
        The checkpoint file to write.
    checkpoint : Resumed, optional
        Content of the existing checkpoint file.
    n_init : int
        Number of starts.
    """

    def __init__(
        self,
        callbacks: Sequence[Callback],
        bar: ProgressBar | SweepBar | None,
        file: CheckpointFile | None,
        checkpoint: Resumed | None,
        n_init: int = 1,
    ) -> None:
        self._callbacks = callbacks
        self._bar = bar
        self._file = file
        # Read by the core: whether it reports progress, runs one start at a time, and when it sends checkpoints.
        self.listens = bool(callbacks) or bar is not None or n_init > 1
        self.in_turn = bool(callbacks) or file is not None
        self.checkpoint_every = None if file is None else file.every_seconds
        self.checkpoint = checkpoint
        self.exception: BaseException | None = None
        # The final objective of the first of several starts.
        self.first_objective: float | None = None
        self._first_mass: float | None = None
        self._is_first_round = False

    def observe(self, event: dict[str, Any]) -> bool:
        """Handle one event of the core; True asks the core to stop, as an exception does."""
        # Write checkpoints even if the work is about to end.
        if event["kind"] != "checkpoint" and self.exception is not None:
            return True
        try:
            return self._observe(event)
        except BaseException as exception:
            self.exception = exception
            raise

    def close(self) -> None:
        """Remove the bar from the terminal."""
        if self._bar is not None:
            self._bar.close()

    def _observe(self, event: dict[str, Any]) -> bool:
        kind = event["kind"]
        if kind == "checkpoint":
            if self._file is not None:
                self._file.write(event["bytes"])
            return False
        if kind == "round":
            if self._file is not None:
                self._file.start_run(event["index"], event["best"], event["n_wide"])
            self._is_first_round = event["first"] == 0 and event["n_runs"] > 0
        if self._bar is not None:
            self._bar.observe(event)
        if kind == "pass":
            if self._is_first_round and event["run"] == 0 and event["mass"] == (self._first_mass or event["mass"]):
                # Passes over all rows after a search in others do not compare with the best start.
                self.first_objective, self._first_mass = event["objective"], event["mass"]
            return self._call(Record._from_core, event)
        return kind == "sweep" and event["draw"] is not None and self._call(Draw._from_core, event)

    def _call(self, read: Callable[[dict[str, Any]], object], event: dict[str, Any]) -> bool:
        if not self._callbacks:
            return False
        shown = read(event)
        # Call all of them, even if the first one asks to stop.
        answers = [bool(callback(shown)) for callback in self._callbacks]
        return any(answers)
