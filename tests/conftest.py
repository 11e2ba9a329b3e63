"""Set-up shared by all tests: the hypothesis profiles and the place of the real data."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Tests run side by side, so each fit uses one thread by default. No result depends on the number.
os.environ.setdefault("RAYON_NUM_THREADS", "1")

CHECKOUT = Path(__file__).resolve().parents[1]

# The examples of the "ci" profile depend on nothing but the test, so that a failure can be repeated by anyone.
# There is no deadline, because wall time on a shared machine says nothing about the code.
COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow], "print_blob": True}
settings.register_profile("ci", derandomize=True, max_examples=25, **COMMON)
settings.register_profile("explore", max_examples=300, **COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the cases slow that `one_in(n)` leaves out.

    With n up to the number of values of each of two parameters, every value stays in some quick case. Of a single
    parameter every nth value does.
    """
    # The values of each parameter of each test, in order.
    known: dict[tuple[str, str], list[int]] = {}
    for item in items:
        for mark in item.iter_markers("one_in"):
            position = 0
            for name, value in item.callspec.params.items():  # type: ignore[attr-defined]
                values = known.setdefault((item.nodeid.partition("[")[0], name), [])
                if id(value) not in values:
                    values.append(id(value))
                position += values.index(id(value))
            if position % mark.args[0]:
                item.add_marker("slow")


@pytest.fixture(scope="session")
def data_directory() -> Path:
    """The real data: `STICKBREAK_DATA`, else `../shared/data` beside the checkout."""
    path = Path(os.environ.get("STICKBREAK_DATA", CHECKOUT.parent / "shared" / "data"))
    if not path.is_dir():
        pytest.skip("no real data: set STICKBREAK_DATA to their directory")
    return path


@pytest.fixture(scope="session")
def checkout() -> Path:
    """The root of the repository, which the tests of an installed wheel do not have."""
    if not (CHECKOUT / "Cargo.toml").exists():
        pytest.skip("these tests lie outside the repository")
    return CHECKOUT


@pytest.fixture
def lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Make a file of `tmp_path`, the current folder, unreadable, also for tests that run as root."""
    if os.name == "nt":
        pytest.skip("permissions of POSIX")
    monkeypatch.chdir(tmp_path)
    tmp_path.chmod(0o777)
    user = os.geteuid()

    def lock(name: str) -> None:
        Path(name).chmod(0)
        if user == 0:
            os.seteuid(65534)

    yield lock
    os.seteuid(user)
