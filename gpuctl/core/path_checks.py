"""Checks of paths: whether a path exists, where it leads, and whether it stays within a folder.

A text that cannot be a path names nothing.
"""

from __future__ import annotations

from pathlib import Path


def is_file(path: str | Path) -> bool:
    """Return whether this file exists; false also for a path that is too long or has invalid characters."""
    try:
        return Path(path).is_file()
    except (OSError, ValueError):
        return False


def is_folder(path: str | Path) -> bool:
    """Return whether this directory exists; false also for a text that cannot be a path."""
    try:
        return Path(path).is_dir()
    except (OSError, ValueError):
        return False


def exists(path: str | Path) -> bool:
    """Return whether anything of that name exists; false also for a text that cannot be a path."""
    try:
        return Path(path).exists()
    except (OSError, ValueError):
        return False


def resolved(path: Path) -> Path:
    """Return the target of a path; if links form a cycle, the path itself, made absolute."""
    try:
        return path.resolve()
    except (RuntimeError, OSError):
        return path.absolute()


def within(folder: Path, name: str) -> Path | None:
    """Return the place of that name in a folder; None if it lies outside, perhaps by a link, or is not a path."""
    try:
        place = folder / name
        inside = place.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError, ValueError):
        return None
    return place if inside else None
