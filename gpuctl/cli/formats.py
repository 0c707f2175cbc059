"""``gpuctl formats``: what gpuctl can read."""

from __future__ import annotations

from typing import Annotated

import typer

from gpuctl.cli.common import print_json, print_table, settings


def formats(
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the log formats that gpuctl reads, and how their files are usually called."""
    from gpuctl.ingest.registry import all_formats

    options = settings(context)
    known = all_formats()
    if as_json or options.json:
        keys = ("name", "title", "file_names", "fills", "timezone", "clock", "order", "parser_version")
        print_json([{key: getattr(f, key) for key in keys} for f in known])
        return
    rows = [(f.name, f.title, ", ".join(f.file_names), ", ".join(f.fills), f.timezone) for f in known]
    print_table(("format", "what", "usual file names", "fills", "time zone"), rows, color=options.color)
