"""Every public callable in a forked child, which has none of the threads of its parent.

Polars waits for threads of its own there, as its documentation says, so its tables are left out.
"""

from __future__ import annotations

import os
import signal

from fuzzing import Failure, generator
from fuzzing.callables import good_call, who_refuses

_KIND = 7
# A call takes milliseconds; a child that waits for a thread waits for ever.
_SECONDS = 60


def run(seed: int, number: int) -> str:
    """Run one case; return how it ended."""
    name, named, call = good_call(generator(seed, _KIND, number))
    if any(type(value).__module__.startswith("polars") for value in named.values()):
        return "Polars"
    try:
        # Whatever the callable sets up is there in the parent.
        call()
    except Exception as error:
        if (who := who_refuses(error)) is not None:
            return f"refused{who}"
        raise
    # Sources of rows may be read once only.
    _, _, call = good_call(generator(seed, _KIND, number))
    child = os.fork()
    if child == 0:
        signal.alarm(_SECONDS)
        code = 1
        try:
            call()
            code = 0
        finally:
            os._exit(code)
    status = os.waitpid(child, 0)[1]
    if status:
        raise Failure(f"{name} ended with {os.waitstatus_to_exitcode(status)} in a child")
    return "success"
