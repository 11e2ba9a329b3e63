"""Optional packages."""

from importlib import import_module
from types import ModuleType

from stickbreak.errors import NotSupported


def scipy_sparse(what: str) -> ModuleType:
    """Return the module scipy.sparse, or raise NotSupported if it is missing, naming `what` needs it."""
    try:
        return import_module("scipy.sparse")
    except ImportError as error:
        raise NotSupported(f"{what} needs the package scipy: pip install scipy") from error
