"""Events between the core and Python during a fit."""

from collections.abc import Callable, Sequence
from typing import Any

from stickbreak.result.history import Record
from stickbreak.run.checkpoints import CheckpointFile, Resumed
from stickbreak.run.progress import ProgressBar

Callback = Callable[[Record], object]


class Observer:
    """Passes events of the core to the progress bar, the callbacks and the checkpoint file.

    Parameters
    ----------
    callbacks : sequence of callables
        Each is called with the record of every pass.
    bar : ProgressBar, optional
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
        bar: ProgressBar | None,
        file: CheckpointFile | None,
        checkpoint: Resumed | None,
        n_init: int,
    ) -> None:
        self._callbacks = callbacks
        self._bar = bar
        self._file = file
        # Read by the core: whether to send events, whether to run one start at a time, and when to send checkpoints.
        self.listens = bool(callbacks) or bar is not None or file is not None or n_init > 1
        self.in_turn = bool(callbacks) or file is not None
        self.checkpoint_every = None if file is None else file.every_seconds
        self.checkpoint = checkpoint
        self.exception: BaseException | None = None
        # The final objective of the first of several starts.
        self.first_objective: float | None = None
        self._is_first_round = False

    def observe(self, event: dict[str, Any]) -> bool:
        """Handle one event of the core; True asks the core to stop, as an exception does."""
        # Write checkpoints even if the fit is about to end.
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
        if event["kind"] == "checkpoint":
            if self._file is not None:
                self._file.write(event["bytes"])
            return False
        if event["kind"] == "round":
            if self._file is not None:
                self._file.start_run(event["index"], event["best"], event["n_wide"])
            self._is_first_round = event["first"] == 0 and event["n_runs"] > 0
            if self._bar is not None:
                self._bar.start_round(event["first"], event["n_runs"])
            return False
        if self._bar is not None:
            self._bar.observe(event)
        if event["kind"] == "pass" and self._is_first_round and event["run"] == 0:
            self.first_objective = event["objective"]
        if event["kind"] != "pass" or not self._callbacks:
            return False
        record = Record._from_core(event)
        # Call all of them, even if the first one asks to stop.
        answers = [bool(callback(record)) for callback in self._callbacks]
        return any(answers)
