"""A client of a cluster whose workers are this process."""

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from stickbreak.shards import tasks


class Client:
    """A client whose tasks run at once, in this process, and are forgotten by turns."""

    status, asynchronous = "running", False

    def __init__(self, *, loses: Callable[[int], bool] = lambda _: False) -> None:
        self._loses, self.n_tasks = loses, 0

    def scheduler_info(self, n_workers: int = -1) -> dict[str, Any]:
        return {"workers": {"here": {}}}

    def run(self, function: Callable[[], Any]) -> dict[str, Any]:
        return {"here": function()}

    def submit(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        self.n_tasks += 1
        if self._loses(self.n_tasks):
            tasks._WORKERS.clear()
        flat = [each for one in arguments for each in (one if isinstance(one, list) else [one])]
        failed = next((each for each in flat if isinstance(each, Future) and each.error is not None), None)
        if failed is not None:
            return failed
        try:
            return Future(self.done(function, *[known(each) for each in arguments]))
        except Exception as error:
            return Future(error=error)

    def done(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return function(*arguments)

    def scatter(self, value: Any, *, hash: bool) -> Any:
        return Future(value)

    def compute(self, delayed: Any) -> Any:
        return [Future(each.compute()) for each in delayed] if isinstance(delayed, list) else Future(delayed.compute())

    def cancel(self, futures: Any, *, force: bool) -> None:
        pass

    def gather(self) -> None:
        pass


class Elsewhere(Client):
    """Its tasks run in the processes of a pool, whichever is free."""

    def __init__(self, pool: ProcessPoolExecutor) -> None:
        super().__init__()
        self._pool = pool

    def done(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return self._pool.submit(function, *arguments).result()


def known(argument: Any) -> Any:
    """An argument of a task with values in place of futures."""
    if isinstance(argument, list):
        return [known(each) for each in argument]
    return argument.value if isinstance(argument, Future) else argument


class Future:
    key, status = "done", "finished"

    def __init__(self, value: Any = None, error: Exception | None = None) -> None:
        self.value, self.error = value, error

    def release(self) -> None:
        pass

    def cancel(self) -> None:
        pass

    def result(self, timeout: float | None = None) -> Any:
        if self.error is not None:
            raise self.error
        return self.value
