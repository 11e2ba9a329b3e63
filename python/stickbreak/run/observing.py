"""What happens between the core and Python while a fit runs."""

from collections.abc import Callable, Sequence
from typing import Any

from stickbreak.result.history import Record
from stickbreak.run.checkpoints import CheckpointFile
from stickbreak.run.progress import ProgressBar

Callback = Callable[[Record], object]


class Observer:
    """Passes the events of the core on to the bar and the callbacks; True asks the core to stop.

    The core must return cleanly whatever a callback does, so exceptions are kept here and raised afterwards.

    Parameters
    ----------
    callbacks : sequence of callables
        Each is called with the record of every pass.
    bar : ProgressBar, optional
        The progress bar.
    file : CheckpointFile, optional
        Where checkpoints go.
    """

    def __init__(self, callbacks: Sequence[Callback], bar: ProgressBar | None, file: CheckpointFile | None) -> None:
        self._callbacks = callbacks
        self._bar = bar
        self._file = file
        self.exception: BaseException | None = None
        self.interrupted = False

    @property
    def for_core(self) -> "Observer | None":
        """Itself, or None where nobody listens, which spares the core the calls."""
        return self if self._callbacks or self._bar is not None or self._file is not None else None

    def start_round(self, index: int, n_runs: int) -> None:
        """Tell the bar that `n_runs` runs start side by side, after `index` others."""
        if self._bar is not None:
            self._bar.start_round(index, n_runs)

    def __call__(self, event: dict[str, Any]) -> bool:
        """Take one event of the core."""
        # The state is worth keeping also where the fit is about to end.
        if event["kind"] != "checkpoint" and (self.exception is not None or self.interrupted):
            return True
        try:
            return self._observe(event)
        except KeyboardInterrupt:
            # Ctrl-C while Python code ran: it means what it means inside the core.
            self.interrupted = True
        except BaseException as exception:
            self.exception = exception
        return True

    def _observe(self, event: dict[str, Any]) -> bool:
        if event["kind"] == "checkpoint":
            if self._file is not None:
                self._file.write(event["bytes"])
            return False
        if self._bar is not None:
            self._bar.observe(event)
        if event["kind"] != "pass" or not self._callbacks:
            return False
        record = Record._from_core(event)
        # All of them are called, even where the first one asks to stop.
        answers = [bool(callback(record)) for callback in self._callbacks]
        return any(answers)
