"""What a path names: whether it is there, where it leads to, whether it stays within a folder.

A text that no path can be names nothing.
"""

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


def resolved(path: Path) -> Path:
    """Return where a path leads to; where links lead in a circle, the path itself, made absolute."""
    try:
        return path.resolve()
    except (RuntimeError, OSError):
        return path.absolute()


def within(folder: Path, name: str) -> Path | None:
    """Return the place of that name in a folder; None: it is outside of it, perhaps by a link, or no path."""
    try:
        place = folder / name
        inside = place.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError, ValueError):
        return None
    return place if inside else None
