"""Extensions of gpuctl: from entry points of installed packages, or from a file that the user names.

Nothing of a package is imported before it is used. Installed packages are trusted; a file is run only if the user names
it.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from gpuctl.core.errors import GpuctlError, InputError, UsageError
from gpuctl.core.file_io import read_whole
from gpuctl.core.path_checks import is_file

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from importlib.metadata import EntryPoint

BUILT_IN = "built in"
"""Origin of everything built into gpuctl."""


@dataclass(frozen=True)
class Plugin:
    """An entry point of an installed package; nothing of it is imported yet.

    Attributes:
        word: its kind, in the singular: ``policy``, ``format`` …
        name: its name.
        origin: its origin: ``package NAME VERSION``.
        rivals: origins of others with the same name; if there are any, none of them can be used by that name.
        point: the entry point.
    """

    word: str
    name: str
    origin: str
    rivals: tuple[str, ...]
    point: EntryPoint

    def load(self) -> object:
        """Import the object of the entry point.

        Raises:
            UsageError: others have the same name.
            InputError: it cannot be imported.
        """
        self.refuse_rivals()
        try:
            return self.point.load()
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise self.broken(f"it cannot be loaded: {type(error).__name__}: {error}") from error

    def files(self, ending: str) -> dict[str, str]:
        """Return the text of the files of one kind next to the entry point's module, by name without the ending.

        If it names something in the module, ``MODULE:NAME``, only that file.

        Raises:
            InputError: the module cannot be imported, or a file is not text.
        """
        from importlib import import_module
        from importlib.resources import files

        try:
            import_module(self.point.module)
            found = {
                file.name.removesuffix(ending): file.read_text("utf-8")
                for file in files(self.point.module).iterdir()
                if file.name.endswith(ending) and self.point.attr in {None, "", file.name.removesuffix(ending)}
            }
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise self.broken(f"it cannot be loaded: {type(error).__name__}: {error}") from error
        return dict(sorted(found.items()))

    def refuse_rivals(self) -> None:
        """Raise an error if others have the same name.

        Raises:
            UsageError: some have.
        """
        if self.rivals:
            several = "; ".join((*self.rivals, self.origin))
            raise UsageError(
                f"{self.word} {self.name!r} exists more than once: {several}", hint="uninstall one of the packages"
            )

    def broken(self, what: str) -> InputError:
        """Return the error that describes its fault."""
        return InputError(
            f"{self.word} {self.name!r} of {self.origin}: {what}",
            hint="this is a fault of that package, not of gpuctl: update or uninstall it",
        )


def installed(word: str, group: str, built_in: Collection[str] = ()) -> tuple[Plugin, ...]:
    """Return the extensions that packages add to a group of entry points, by name; nothing is imported.

    Args:
        word: their kind, in the singular, for messages.
        group: ``gpuctl.policies`` …
        built_in: names that gpuctl itself uses.
    """
    found = _points(group)
    origins: dict[str, list[str]] = {name: [BUILT_IN] for name in built_in}
    for point, origin in found:
        origins.setdefault(point.name, []).append(origin)
    return tuple(
        Plugin(word, point.name, origin, _without(origins[point.name], origin), point) for point, origin in found
    )


def origin(name: str, there: Iterable[Plugin]) -> str:
    """Return the origin of a name: built in, a package and its version, or a file."""
    file = split_file(name)
    if file is not None:
        return f"file {file[0]}"
    return next((each.origin for each in there if each.name == name), BUILT_IN)


@cache
def _every_point() -> Any:
    """Return the entry points of all packages, with ``select(group=)``; reading all takes as long as one group."""
    from importlib.metadata import entry_points

    return entry_points()


@cache
def _points(group: str) -> tuple[tuple[EntryPoint, str], ...]:
    found = {(point.name, _origin(point), point.value): point for point in _every_point().select(group=group)}
    return tuple((found[key], key[1]) for key in sorted(found))


def _origin(point: EntryPoint) -> str:
    if point.dist is None:
        return "a package without a name"
    return f"package {point.dist.metadata['Name']} {point.dist.version}"


def _without(origins: Sequence[str], own: str) -> tuple[str, ...]:
    others = list(origins)
    others.remove(own)
    return tuple(others)


# ---- files


def split_file(text: str, ending: str = ".py") -> tuple[Path, str] | None:
    """Return the parts of ``FILE.py:NAME``; None if a text is not of that form."""
    path, colon, name = text.rpartition(":")
    return (Path(path), name) if colon and path.endswith(ending) else None


def of_file(path: Path, word: str, usage: str) -> ModuleType:
    """Run a file that the user has named, once; later calls return the same module.

    Args:
        path: of the file.
        word: the kind of object wanted from it, for messages.
        usage: how it is named on the command line.

    Raises:
        UsageError: there is no such file.
        InputError: it cannot be read, is not Python, or fails.
    """
    if not is_file(path):
        raise UsageError(f"{str(path)[:200]}: no such file", hint=usage)
    return _module(path, word, read_whole(path))


@cache
def _module(path: Path, word: str, code: bytes) -> ModuleType:
    from hashlib import sha256

    module = ModuleType(f"{path.stem}_{sha256(code).hexdigest()[:12]}")
    module.__file__ = str(path)
    # dataclasses look up the names of annotations here
    sys.modules[module.__name__] = module
    try:
        # the user named this file on the command line in order to run it
        exec(compile(code, str(path), "exec"), module.__dict__)  # noqa: S102
    except SyntaxError as error:
        raise InputError(f"not Python: {error.msg}", path=str(path), line=error.lineno) from error
    except (GpuctlError, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise own_fault(error, str(path), "it cannot be loaded", word) from error
    return module


def own_fault(error: BaseException, path: str, what: str, word: str = "policy") -> InputError:
    """Return an error for an exception that a user's own code raised, with the line of their file."""
    line = None
    at = error.__traceback__
    while at is not None:
        if at.tb_frame.f_code.co_filename == path:
            line = at.tb_lineno
        at = at.tb_next
    return InputError(
        f"{what}: {type(error).__name__}: {error}", path=path, line=line, hint=f"a fault of the {word}, not of gpuctl"
    )
