"""Optional packages for training, installed by ``gpuctl-toolkit[learn]``."""

from __future__ import annotations

import importlib
from typing import Any

from gpuctl.core.errors import DependencyError

HINT = "pip install 'gpuctl-toolkit[learn]'"


def needed(name: str, what: str) -> Any:
    """Import a package of the extra.

    Args:
        name: import name of the package.
        what: the work that needs it, as the subject of a sentence.

    Raises:
        DependencyError: it is not installed.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise DependencyError(
            f"{what} needs {name}, which gpuctl-toolkit[learn] installs: {error}", hint=HINT
        ) from error
