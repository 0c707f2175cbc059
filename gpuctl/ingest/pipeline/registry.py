"""Finds the source formats: those of `gpuctl.ingest.formats`, of installed packages, and of files.

Every module of `gpuctl.ingest.formats` has one, and every entry of the TOML files in that folder declares one; an entry
point of the group ``gpuctl.formats`` has the name of its format.
"""

from __future__ import annotations

import importlib
import logging
import pkgutil
from dataclasses import replace
from functools import cache, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpuctl.core import plugins
from gpuctl.core.errors import GpuctlError, InputError, UsageError
from gpuctl.core.suggestions import meant
from gpuctl.ingest import formats
from gpuctl.ingest.core.format import Format
from gpuctl.ingest.traces.declared import formats_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gpuctl.ingest.traces.mapped import ColumnMapping

GROUP = "gpuctl.formats"
_FILE = "--log-format FILE.py:NAME, where NAME is a gpuctl.ingest.core.format.Format in it"
_log = logging.getLogger(__name__)


@cache
def built_in() -> tuple[Format, ...]:
    """Import and return every built-in format, in the order of loading (`Format.order`, then name).

    Modules whose names begin with an underscore are skipped. A module that cannot be imported or has no ``FORMAT``, and
    a declaration that is wrong, are faults of this program and are raised as such, never skipped.
    """
    names = [m.name for m in pkgutil.iter_modules(formats.__path__) if not m.name.startswith("_")]
    found: list[Format] = [importlib.import_module(f"{formats.__name__}.{name}").FORMAT for name in names]
    declarations = [file for folder in formats.__path__ for file in sorted(Path(folder).glob("*.toml"))]
    found += [fmt for file in declarations for fmt in formats_of(file)]
    if len({f.name for f in found}) < len(found):
        raise ValueError(f"two formats of one name among {sorted(f.name for f in found)}")
    return _in_order(found)


@cache
def all_formats() -> tuple[Format, ...]:
    """Import and return every format, including those of installed packages, in the order of loading.

    An unusable format of a package causes one warning, and the others are returned.
    """
    found = list(built_in())
    for plugin in installed():
        try:
            found.append(of_package(plugin))
        except GpuctlError as error:
            _log.warning("%s", error.message)
    return _in_order(found)


def _in_order(found: Sequence[Format]) -> tuple[Format, ...]:
    return tuple(sorted(found, key=lambda f: (f.order, f.name)))


def installed() -> tuple[plugins.Plugin, ...]:
    """Return the formats of installed packages, without importing them."""
    return plugins.installed("format", GROUP, {fmt.name for fmt in built_in()})


def of_package(plugin: plugins.Plugin) -> Format:
    """Return the format that an installed package adds.

    Raises:
        UsageError: others have the same name.
        InputError: it cannot be loaded, or is not a format of that name.
    """
    found = plugin.load()
    if not isinstance(found, Format):
        raise plugin.broken("it is not a gpuctl.ingest.core.format.Format")
    if found.name != plugin.name:
        raise plugin.broken(f"it calls itself {found.name!r}")
    return _guarded(found, plugin.origin)


def of_file(path: Path, name: str) -> Format:
    """Return the format that a file has under a name.

    Raises:
        UsageError: there is no such file, or nothing of that name in it is a format.
        InputError: the file cannot be loaded.
    """
    module = plugins.of_file(path, "format", _FILE)
    found = module.__dict__.get(name)
    if not isinstance(found, Format):
        there = [key for key, value in vars(module).items() if isinstance(value, Format)]
        hint = f"its formats are: {', '.join(there)}" if there else _FILE
        raise UsageError(f"{path}: has no format {name!r}", hint=hint)
    return _guarded(found, f"file {path}")


def _guarded(fmt: Format, whence: str) -> Format:
    """The same format, with its errors reported as its own, so that they do not keep other formats from their files."""
    what = f"format {fmt.name!r} of {whence}"

    def guarded(name: str, function: Callable[..., Any] | None) -> Callable[..., Any] | None:
        reported: set[str] = set()

        def ask(*given: Any) -> Any:
            try:
                return function(*given) if function is not None else None
            except Exception as error:
                text = f"{what}: {name}() failed: {type(error).__name__}: {error}"
                if text not in reported:
                    reported.add(text)
                    _log.warning("%s", text)
                return None

        return None if function is None else wraps(function)(ask)

    def done(name: str, function: Callable[..., Any] | None) -> Callable[..., Any] | None:
        def do(*given: Any) -> Any:
            try:
                return function(*given) if function is not None else None
            except GpuctlError:
                raise
            except Exception as error:
                code = getattr(function, "__code__", None)
                fault = plugins.own_fault(error, code.co_filename if code else "", f"{name}() failed", "format")
                raise InputError(f"{what}: {fault.message}", hint=fault.hint) from error

        return None if function is None else wraps(function)(do)

    changed: dict[str, Any] = {name: guarded(name, getattr(fmt, name)) for name in ("sniff", "claims", "passes_over")}
    changed |= {name: done(name, getattr(fmt, name)) for name in ("load", "settle", "conclude", "whose", "version")}
    return replace(fmt, **changed)


def origin(name: str) -> str:
    """Return the origin of a format: built in, or a package and its version."""
    return next((each.origin for each in installed() if each.name == name), plugins.BUILT_IN)


def with_named(name: str | None, known: Sequence[Format]) -> tuple[tuple[Format, ...], str | None]:
    """Return all formats, including that of ``FILE.py:NAME`` if one is named so, and its own name.

    Raises:
        UsageError: there is no format of that name, or there are several.
        InputError: the file cannot be loaded.
    """
    if name is None:
        return tuple(known), None
    file = plugins.split_file(name)
    if file is not None:
        own = of_file(*file)
        clash = next((fmt for fmt in known if fmt.name == own.name), None)
        if clash is not None:
            raise UsageError(
                f"format {own.name!r} exists more than once: {origin(own.name)}; file {file[0]}",
                hint="rename the one in the file",
            )
        return _in_order([*known, own]), own.name
    return tuple(known), named(name, known).name


def named(name: str, formats: Sequence[Format]) -> Format:
    """Return the format of a name.

    Raises:
        UsageError: it is unknown, or several packages have it.
        InputError: that of a package cannot be loaded.
    """
    known = {fmt.name: fmt for fmt in formats}
    for plugin in installed():
        if plugin.name == name:
            # why it cannot be used, if that is so
            of_package(plugin)
    if name not in known:
        hint = meant(name, known, "gpuctl formats lists them")
        raise UsageError(f"--log-format {name!r}: no such format", hint=hint)
    return known[name]


def formats_for(
    columns: str | None,
    *,
    delimiter: str | None = None,
    cumulative: bool = False,
    job_logs: Sequence[str] = (),
    signatures: Sequence[Path] = (),
    mapped: ColumnMapping | None = None,
    swf_unit: str | None = None,
) -> tuple[Format, ...]:
    """Return every format, some of them adapted to the user's options.

    Args:
        columns: the columns of sacct's text without a header, in their order.
        delimiter: the delimiter between these; None: detect it.
        cumulative: the bytes of traffic CSVs are counters.
        job_logs: patterns of the paths of jobs' own output (`gpuctl.ingest.joboutput.patterns`).
        signatures: the user's own signature tables for it.
        mapped: meaning of the columns of a CSV of jobs; adds a format for such files.
        swf_unit: meaning of a processor of SWF and of Batsim.

    Raises:
        InputError: a column is not a field of sacct, or the job id is not among them; a table cannot be read.
        UsageError: a pattern names no job; there is no such unit; a delimiter without columns, or one that is none.
    """
    from gpuctl.ingest.formats import batsim_jobs, batsim_workload, slurm_sacct, swf, traffic_csv
    from gpuctl.ingest.traces.mapped import with_map

    own: dict[str, Format] = {}
    if columns is not None:
        own[slurm_sacct.FORMAT.name] = slurm_sacct.with_columns(columns, delimiter)
    elif delimiter is not None:
        raise UsageError(
            "--delimiter is for sacct text without a header", hint="name its columns, too: --columns JobIDRaw,State,..."
        )
    if cumulative:
        own[traffic_csv.FORMAT.name] = traffic_csv.with_counters()
    if job_logs or signatures:
        own |= {found.name: found for found in _of_output(job_logs, signatures)}
    if swf_unit is not None:
        own |= {module.FORMAT.name: module.with_unit(swf_unit) for module in (swf, batsim_jobs, batsim_workload)}
    known = [own.get(found.name, found) for found in all_formats()]
    return tuple(known) if mapped is None else _in_order([*known, with_map(mapped)])


def _of_output(job_logs: Sequence[str], signatures: Sequence[Path]) -> tuple[Format, ...]:
    from gpuctl.ingest.formats import job_output, yarn_aggregated_logs, yarn_container_logs
    from gpuctl.ingest.joboutput.patterns import Pattern
    from gpuctl.ingest.joboutput.reader import Reader

    reader = Reader(tuple(Pattern(text) for text in job_logs), tuple(signatures))
    if signatures:
        # errors in them are raised before anything is read
        _ = reader.scanner
    return tuple(module.with_reader(reader) for module in (job_output, yarn_container_logs, yarn_aggregated_logs))
