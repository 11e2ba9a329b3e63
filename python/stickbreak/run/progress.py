"""The progress bar of a fit."""

import sys
from collections.abc import Callable
from typing import Any

from tqdm import tqdm

_SECONDS_BEFORE_IT_SHOWS = 2.0
_LAYOUT = "{desc}: {percentage:3.0f}%|{bar}| pass {n:.1f} of at most {total} [{elapsed}{postfix}]"


class ProgressBar:
    """A bar on stderr that follows the events of the core, over all restarts of a fit.

    Parameters
    ----------
    max_passes : int
        The most passes of one run.
    n_init : int
        The number of runs.
    delay : float
        Seconds before the bar shows.
    """

    def __init__(self, max_passes: int, n_init: int, delay: float) -> None:
        self._max_passes = max_passes
        self._n_init = n_init
        self._passes_before = 0
        # Of each run of the round: complete passes, and those with the part of the next one.
        self._passes_done: dict[int, int] = {}
        self._passes_begun: dict[int, float] = {}
        self._bar: tqdm[Any] | None = tqdm(
            desc="fit",
            total=max_passes * n_init,
            bar_format=_LAYOUT,
            delay=delay,
            miniters=0,
            leave=False,
            dynamic_ncols=True,
            file=sys.stderr,
        )

    def start_round(self, index: int, n_runs: int) -> None:
        """Move to `n_runs` runs side by side, after `index` others."""
        self._passes_before = index * self._max_passes
        self._passes_done, self._passes_begun = {}, {}
        if self._bar is not None and self._n_init > 1:
            which = f"start {index + 1}" if n_runs == 1 else f"starts {index + 1} to {index + n_runs}"
            starts = f"{which} of {self._n_init}"
            self._bar.set_description_str(f"fit, {starts}", refresh=False)
        self._show()

    def observe(self, event: dict[str, Any]) -> None:
        """Move on by an event of the core."""
        run = event["run"]
        done = self._passes_done.get(run, 0)
        if event["kind"] == "batch":
            self._passes_begun[run] = min(done + event["batch"] / max(1, event["n_batches"]), self._max_passes)
            self._show()
        elif event["kind"] == "pass":
            self._passes_done[run] = done + 1
            self._passes_begun[run] = done + 1
            if self._bar is not None:
                text = f"elbo {event['elbo']:.8g}, {event['n_components']} components"
                self._bar.set_postfix_str(text, refresh=False)
            self._show()

    def close(self) -> None:
        """Take the bar off the terminal."""
        if self._bar is not None:
            bar, self._bar = self._bar, None
            self._guarded(bar.close)

    def _show(self) -> None:
        bar = self._bar
        if bar is not None:
            # Set, not added: rounding must not carry the position beyond the total. `update` respects the delay.
            passes = self._passes_before + sum(self._passes_begun.values())
            bar.n = min(passes, self._max_passes * self._n_init)
            self._guarded(lambda: bar.update(0))

    def _guarded(self, draw: Callable[[], object]) -> None:
        # A terminal that has gone away must not end hours of work.
        try:
            draw()
        except OSError:
            self._bar = None


def progress_bar(progress: bool | None, max_passes: int, n_init: int) -> ProgressBar | None:
    """Return the bar that `progress` asks for: None decides by whether stderr is a terminal."""
    if progress is False or max_passes == 0 or sys.stderr is None:
        return None
    if progress is None:
        return ProgressBar(max_passes, n_init, _SECONDS_BEFORE_IT_SHOWS) if sys.stderr.isatty() else None
    return ProgressBar(max_passes, n_init, 0.0)
