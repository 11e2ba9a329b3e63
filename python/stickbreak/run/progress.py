"""Progress bars of fits and of chains."""

import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from stickbreak.terminal import plain

if TYPE_CHECKING:
    from tqdm import tqdm

_SECONDS_BEFORE_IT_SHOWS = 2.0
_LAYOUT = "{desc}: {percentage:3.0f}%|{bar}| pass {n:.1f} of at most {total} [{elapsed}{postfix}]"
_LAYOUT_OF_READING = "{desc}: {percentage:3.0f}%|{bar}| [{elapsed}<{remaining}]"
_LAYOUT_OF_SWEEPS = "{desc}: {percentage:3.0f}%|{bar}| sweep {n} of {total} [{elapsed}<{remaining}{postfix}]"


def _is_notebook() -> bool:
    """Whether this is a Jupyter kernel."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"


def _is_watched() -> bool:
    """Whether stderr is a terminal or is shown in a notebook."""
    return sys.stderr.isatty() or _is_notebook()


def _kind() -> type[Any]:
    """Return the class of the bar; the one for notebooks needs the package ipywidgets."""
    if _is_notebook() and find_spec("ipywidgets") is not None:
        notebook: type[Any] = import_module("tqdm.notebook").tqdm
        return notebook
    from tqdm import tqdm

    return tqdm


class Bar:
    """A bar on stderr that survives a closed terminal.

    Parameters
    ----------
    name : str
        Text before the percentage.
    total : int
        The value at 100%.
    layout : str
        Layout string of tqdm.
    delay : float
        Seconds before the bar shows.
    """

    def __init__(self, name: str, total: int, layout: str, delay: float) -> None:
        self._total = total
        self._bar: tqdm[Any] | None = _kind()(
            desc=plain(name),
            total=total,
            bar_format=layout,
            delay=delay,
            miniters=0,
            leave=False,
            dynamic_ncols=True,
            file=sys.stderr,
        )

    def close(self) -> None:
        """Remove the bar from the terminal."""
        if self._bar is not None:
            bar, self._bar = self._bar, None
            self._guarded(bar.close)

    def _say(self, text: str) -> None:
        if self._bar is not None:
            self._bar.set_postfix_str(text, refresh=False)

    def _move_to(self, position: float) -> None:
        bar = self._bar
        if bar is not None:
            # Sets the position instead of adding: rounding could exceed the total. `update` respects the delay.
            bar.n = min(position, self._total)
            self._guarded(lambda: bar.update(0))

    def _guarded(self, draw: Callable[[], object]) -> None:
        # A closed terminal must not end hours of work.
        try:
            draw()
        except OSError:
            self._bar = None


class ProgressBar(Bar):
    """A bar that follows the events of a fit, over all restarts.

    Parameters
    ----------
    max_passes : int
        Maximum number of passes of one run.
    n_init : int
        Number of runs.
    delay : float
        Seconds before the bar shows.
    """

    def __init__(self, max_passes: int, n_init: int, delay: float) -> None:
        super().__init__("fit", max_passes * n_init, _LAYOUT, delay)
        self._max_passes = max_passes
        self._n_init = n_init
        self._passes_before = 0
        # For each start: complete passes, and passes including the completed part of the current one.
        self._passes_done: dict[int, int] = {}
        self._passes_begun: dict[int, float] = {}
        self._has_begun = False

    def _start_round(self, index: int, n_runs: int) -> None:
        self._passes_before = index * self._max_passes
        self._passes_done, self._passes_begun = {}, {}
        if self._bar is not None and self._n_init > 1:
            which = f"start {index + 1}" if n_runs == 1 else f"starts {index + 1} to {index + n_runs}"
            starts = f"{which} of {self._n_init}"
            self._bar.set_description_str(f"fit, {starts}", refresh=False)
        self._show()

    def read(self, share: float) -> None:
        """Show how much of a file has been read before the first pass; later the passes move the bar."""
        if not self._has_begun:
            self._say(f"reading {share:.0%}")
            self._show()

    def observe(self, event: dict[str, Any]) -> None:
        """Advance by an event of the core."""
        if event["kind"] == "round":
            self._start_round(event["first"], event["n_runs"])
            return
        if not self._has_begun:
            self._has_begun = True
            self._say("")
        run = event["run"]
        done = self._passes_done.get(run, 0)
        if event["kind"] == "batch":
            self._passes_begun[run] = min(done + event["batch"] / max(1, event["n_batches"]), self._max_passes)
            self._show()
        elif event["kind"] == "pass":
            self._passes_done[run] = done + 1
            self._passes_begun[run] = done + 1
            self._say(f"elbo {event['elbo']:.8g}, {event['n_components']} components")
            self._show()

    def _show(self) -> None:
        self._move_to(self._passes_before + sum(self._passes_begun.values()))


class SweepBar(Bar):
    """A bar that follows the events of chains, over all of them.

    Parameters
    ----------
    chains : int
        Number of chains.
    n_sweeps : int
        Sweeps of each chain, warm-up included.
    delay : float
        Seconds before the bar shows.
    """

    def __init__(self, chains: int, n_sweeps: int, delay: float) -> None:
        super().__init__("sample", chains * n_sweeps, _LAYOUT_OF_SWEEPS, delay)
        self._done: dict[int, int] = {}

    def observe(self, event: dict[str, Any]) -> None:
        """Advance by an event of the core."""
        self._done[event["run"]] = event["index"] + 1
        self._say(f"log joint {event['log_joint']:.8g}, {event['n_clusters']} clusters")
        self._move_to(sum(self._done.values()))


class ReadingBar(Bar):
    """A bar that follows the reading of a file.

    Parameters
    ----------
    name : str
        The name of the file.
    delay : float
        Seconds before the bar shows.
    """

    def __init__(self, name: str, delay: float) -> None:
        super().__init__(f"read {name}", 100, _LAYOUT_OF_READING, delay)
        self._share = 0.0

    def read(self, share: float) -> None:
        """Move to the fraction of the file that has been read; repeated readings do not move the bar back."""
        self._share = max(self._share, share)
        self._move_to(100.0 * self._share)


def progress_bar(progress: bool | None, max_passes: int, n_init: int) -> ProgressBar | None:
    """Return the bar requested by `progress`; None shows one if it would be visible."""
    if progress is False or max_passes == 0 or sys.stderr is None:
        return None
    if progress is None:
        return ProgressBar(max_passes, n_init, _SECONDS_BEFORE_IT_SHOWS) if _is_watched() else None
    return ProgressBar(max_passes, n_init, 0.0)


def sweep_bar(progress: bool | None, chains: int, n_sweeps: int) -> SweepBar | None:
    """Return the bar of chains requested by `progress`, as `progress_bar` does."""
    if progress is False or sys.stderr is None:
        return None
    if progress is None:
        return SweepBar(chains, n_sweeps, _SECONDS_BEFORE_IT_SHOWS) if _is_watched() else None
    return SweepBar(chains, n_sweeps, 0.0)


def reading_bar(progress: bool | None, name: str) -> ReadingBar | None:
    """Return the bar for reading a file requested by `progress`, as `progress_bar` does."""
    if progress is False or sys.stderr is None:
        return None
    if progress is None:
        return ReadingBar(name, _SECONDS_BEFORE_IT_SHOWS) if _is_watched() else None
    return ReadingBar(name, 0.0)
