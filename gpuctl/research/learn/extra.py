"""Packages that only training needs, and that are installed with ``gpuctl-toolkit[learn]``."""

from __future__ import annotations

import importlib
from typing import Any

from gpuctl.core.errors import DependencyError

HINT = "pip install 'gpuctl-toolkit[learn]'"


def needed(name: str, what: str) -> Any:
    """Import a package of the extra.

    Args:
        name: of the package, as it is imported.
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
