"""``gpuctl formats``: what gpuctl can read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpuctl.cli.common import named_to_check, print_json, print_table, print_violations, visible
from gpuctl.cli.options import PlainJsonOption
from gpuctl.cli.settings import settings

if TYPE_CHECKING:
    from gpuctl.ingest.core.format import Format

_KEYS = (
    *("name", "title", "file_names", "fills", "timezone", "clock", "order", "parser_version"),
    *("epoch", "unit", "verified"),
)
_VERIFIED = {"real file": "real files", "sample": "a part of one", "documentation": "not run on the real file"}


def formats(
    context: typer.Context,
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="One format, or FILE.py:NAME. Default: all."),
    ] = None,
    check: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Read this file of the format, intact and with damage, and list violations of the rules for formats.",
        ),
    ] = None,
    as_json: PlainJsonOption = False,
) -> None:
    """List the log formats that gpuctl reads, their sources, and their usual file names."""
    options = settings(context)
    as_json = as_json or options.json
    if check is not None:
        _check(_chosen(named_to_check(name, "format", "gpuctl formats NAME --check FILE"))[0], check, as_json=as_json)
        return
    known = _all() if name is None else [_chosen(name)]
    if as_json:
        print_json([{key: getattr(f, key) for key in _KEYS} | {"from": whence} for f, whence in known])
        return
    rows = [
        (f.name, f.title, ", ".join(f.file_names), ", ".join(f.fills), f.timezone, _VERIFIED[f.verified], whence)
        for f, whence in known
    ]
    columns = ("format", "what", "usual file names", "fills", "time zone", "tried on", "from")
    print_table(columns, rows, color=options.color, wide="what")


def _all() -> list[tuple[Format, str]]:
    from gpuctl.ingest.pipeline.registry import all_formats, origin

    return [(fmt, origin(fmt.name)) for fmt in all_formats()]


def _chosen(name: str) -> tuple[Format, str]:
    from gpuctl.core.plugins import split_file
    from gpuctl.ingest.pipeline.registry import all_formats, named, origin, with_named

    file = split_file(name)
    known, own = with_named(name, all_formats())
    return named(own or name, known), origin(name) if file is None else f"file {file[0]}"


def _check(fmt: Format, fixture: Path, *, as_json: bool) -> None:
    from gpuctl.ingest.pipeline import conformance

    found = conformance.check(fmt, fixture)
    about = {"format": fmt.name, "cases": conformance.CASES}
    print_violations(
        about, found, f"{fmt.name}: {visible(fixture.name)} and {conformance.CASES} damaged copies", as_json=as_json
    )
