"""Output for CI systems: a short summary in Markdown, and the checks as JUnit XML."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING, Any, BinaryIO

import polars as pl

from gpuctl.core.file_io import write_atomically
from gpuctl.reports.cell_text import shown, visible
from gpuctl.reports.export.markdown import escaped
from gpuctl.reports.report import BY_CHANCE, sentence, verdict

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from gpuctl.core.results import Analysis

MOST_CHANGES = 25
"""Number of metrics in the Markdown: the largest changes from the baseline."""

_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_markdown(summary: Analysis, path: Path) -> None:
    """Write a short summary: failed checks, findings, and changes against the baseline.

    Args:
        summary: from `gpuctl.reports.report.summarize`.
        path: the file, replaced at the end.

    Raises:
        UsageError: it cannot be written.
    """
    text = ("\n".join(_markdown(summary)) + "\n").encode("utf-8", "backslashreplace")
    write_atomically(path, lambda file: _put(file, text))


def write_junit(summary: Analysis, path: Path) -> None:
    """Write the checks as JUnit XML, one test case per value that a condition applies to.

    Args:
        summary: from `gpuctl.reports.report.summarize`.
        path: the file, replaced at the end.

    Raises:
        UsageError: it cannot be written.
    """
    tree = ET.ElementTree(_junit(summary))
    ET.indent(tree)
    write_atomically(path, lambda file: tree.write(file, encoding="utf-8", xml_declaration=True))


def _put(file: BinaryIO, text: bytes) -> None:
    file.write(text)


def _markdown(summary: Analysis) -> Iterator[str]:
    yield f"## gpuctl: {escaped(summary.cluster)}"
    checks = summary.table("checks")
    if checks is not None:
        outcome = verdict(summary)
        yield f"\n**{outcome}**\n" if checks.frame["failed"].any() else f"\n{outcome}\n"
        if checks.frame.height:
            yield "| | result | metric | value | limit | condition |"
            yield "|---|---|---|---:|---:|---|"
        for row in sorted(checks.frame.iter_rows(named=True), key=lambda one: not one["failed"]):
            words = [row["result"], row["metric"], _value(row["value"], row["unit"]), _value(row["limit"], row["unit"])]
            mark = "failed" if row["failed"] else "passed"
            yield f"| {mark} | {' | '.join(map(escaped, words))} | {escaped(row['condition'])} |"
    changed = _changed(summary)
    if changed:
        yield "\n### Changes from the baseline\n"
        yield "| result | metric | before | now | change |"
        yield "|---|---|---:|---:|---:|"
        for row in changed[:MOST_CHANGES]:
            before, now = (_value(row[name], row["unit"]) for name in ("baseline", "value"))
            words = [row["result"], row["metric"], before, now, _changed_by(row) + _judged(row)]
            yield f"| {' | '.join(map(escaped, words))} |"
        yield f"\n{BY_CHANCE}"
    if len(changed) > MOST_CHANGES:
        yield f"\n{len(changed) - MOST_CHANGES} smaller changes are on the page."
    standout = summary.table("standout")
    if standout is not None and standout.frame.height:
        yield "\n### What stands out\n"
        several = standout.frame["result"].n_unique() > 1
        for row in standout.frame.iter_rows(named=True):
            of = f"**{escaped(row['result'])}**: " if several else ""
            yield f"- {of}{escaped(row['finding'])} (`{row['table']}`)"
    yield f"\n<sub>{escaped(summary.command)}, gpuctl {escaped(summary.version)}</sub>"


def _value(value: float | None, unit: str) -> str:
    return "not known" if value is None else f"{shown(value, unit)} {unit}".removesuffix(" -")


def _changed(summary: Analysis) -> list[dict[str, Any]]:
    table = summary.table("metrics")
    if table is None:
        return []
    # for a value in per cent, points count; a value that was 0 has no relative change, and comes first
    by = pl.when(pl.col("unit") == "%").then(pl.col("change")).otherwise(pl.col("change_pct"))
    by = pl.when(by.is_null() & (pl.col("change") != 0)).then(math.inf).otherwise(by.abs())
    frame = table.frame.filter(by >= 0.05).sort(by, descending=True, maintain_order=True)
    return list(frame.iter_rows(named=True))


def _changed_by(row: dict[str, Any]) -> str:
    if row["unit"] == "%":
        return f"{row['change']:+.1f} points"
    if row["change_pct"] is None:
        sign = "+" if row["change"] > 0 else ""
        return f"{sign}{_value(row['change'], row['unit'])}"
    return f"{row['change_pct']:+.1f} %"


def _judged(row: dict[str, Any]) -> str:
    """Return which direction is better. No judgement on the change itself: periods also differ by chance."""
    return f" ({row['better']} is better)" if row["better"] else ""


def _junit(summary: Analysis) -> ET.Element:
    table = summary.table("checks")
    rows = list(table.frame.iter_rows(named=True)) if table is not None else []
    counts = {"tests": str(len(rows)), "failures": str(sum(row["failed"] for row in rows))}
    root = ET.Element("testsuites", counts)
    suite = ET.SubElement(root, "testsuite", {"name": "gpuctl report", **counts, "errors": "0", "skipped": "0"})
    for row in rows:
        name = _plain(f"{row['metric']}: {row['condition']}")
        case = ET.SubElement(suite, "testcase", {"classname": _plain(row["result"]), "name": name})
        text = _plain(sentence(row))
        if row["failed"]:
            ET.SubElement(case, "failure", {"message": text, "type": "condition"}).text = text
        else:
            ET.SubElement(case, "system-out").text = text
    return root


def _plain(text: str) -> str:
    """Return text that XML 1.0 can carry, with other characters made visible."""
    return _NO_XML.sub("\ufffd", visible(text))
