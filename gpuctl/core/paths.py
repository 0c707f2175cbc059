"""Whether a text that a user gave names a file: texts that no path can be name none."""

from __future__ import annotations

from pathlib import Path


def is_file(path: str | Path) -> bool:
    """Whether there is such a file; false also for what is too long, or holds what no path may hold."""
    try:
        return Path(path).is_file()
    except (OSError, ValueError):
        return False


def is_folder(path: str | Path) -> bool:
    """Whether there is such a directory; false also for what no path can be."""
    try:
        return Path(path).is_dir()
    except (OSError, ValueError):
        return False


def exists(path: str | Path) -> bool:
    """Whether there is anything of that name; false also for what no path can be."""
    try:
        return Path(path).exists()
    except (OSError, ValueError):
        return False
