"""Where a command may write: never over what it reads, over a trace store, or twice to one place."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gpuctl.core.errors import UsageError
from gpuctl.core.path_checks import is_file
from gpuctl.services.inputs import is_store

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import typer


def check_outputs(
    context: typer.Context, files: Mapping[str, Path | None], directories: Mapping[str, Path | None] | None = None
) -> None:
    """Refuse places that cannot or must not be written to, before any work is done.

    Args:
        context: of the command; all of its options and arguments that name files, but for these, are what it reads.
        files: by option, files to be written.
        directories: by option, directories to be written to.

    Raises:
        UsageError: names the option and what is wrong.
    """
    from gpuctl.core.path_checks import resolved
    from gpuctl.reports.export.files import check_places

    check_places(files, directories or {})
    read = list(_read(context, {_parameter(option) for option in (*files, *(directories or {}))}))
    taken: dict[Path, str] = {}
    for option, path in files.items():
        if path is None or (path.exists() and not path.is_file()):
            continue  # a device or a pipe is written to, not replaced; to look into it might take for ever
        place = resolved(path)
        if place in taken:
            raise UsageError(f"{option} {path}: {taken[place]} writes there too", hint="give two different files")
        taken[place] = option
        if option == "--store" and is_store(path):
            continue  # whether a store may be replaced by another is said where it is written
        if any(place == resolved(one) for one in read):
            raise UsageError(f"{option} {path}: the command uses that file itself", hint="choose another one")
        if is_store(path):
            raise UsageError(f"{option} {path}: a trace store is never replaced", hint="choose another file")
        folder = next((one for one in read if one.is_dir() and place.is_relative_to(resolved(one))), None)
        if folder is not None and path.exists():
            why = _log(path)
            if why is not None:
                raise UsageError(f"{option} {path}: a log that the command reads ({why})", hint="choose another file")
    for option, path in (directories or {}).items():
        if path is not None and any(one.is_dir() and resolved(one) == resolved(path) for one in read):
            raise UsageError(f"{option} {path}: the command uses that directory itself", hint="choose another one")


def _parameter(option: str) -> str:
    return option.lstrip("-").replace("-", "_")


def _read(context: typer.Context, written: set[str]) -> Iterator[Path]:
    """All paths on the command line but those that are written to."""
    for parameter in context.command.params:
        if parameter.name is None or parameter.name in written:
            continue
        value = context.params.get(parameter.name)
        is_path = parameter.type.name in {"path", "file", "directory"}
        for one in value if isinstance(value, list | tuple) else (value,):
            if isinstance(one, Path) or (is_path and isinstance(one, str)):
                yield Path(one)
            elif isinstance(one, str):
                # what is a file or something else, as of --cluster; FILE:COLUMN, as of --run-times
                yield from (Path(text) for text in (one, one.rpartition(":")[0]) if text and is_file(text))


def _log(path: Path) -> str | None:
    """What a file is recognised as a log by; None where it is none."""
    from gpuctl.core.file_io import read_head
    from gpuctl.ingest.pipeline.detect import HEAD, detect
    from gpuctl.ingest.pipeline.registry import all_formats

    try:
        found, why, _ = detect(path.name, read_head(path, HEAD), all_formats())
    except OSError:
        return None
    return None if found is None else why
