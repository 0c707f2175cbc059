"""The check of a store's lake: whether its files are there, and hold the bytes that were written."""

from __future__ import annotations

from hashlib import file_digest
from pathlib import Path
from typing import TYPE_CHECKING

from gpuctl.core.numbers import size
from gpuctl.core.text import plural
from gpuctl.doctor.check import Finding, Opened, Status

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpuctl.store.lake import File, Lake

MOST = 4 * 1024**3
"""Bytes that are read; DuckDB checks no checksums in Parquet, and the bytes of a lake may take hours to read."""


def lake(opened: Opened) -> Iterable[Finding]:
    """Whether the lake's files are as they were written; where it is missing, the store did not open (`LakeError`)."""
    from gpuctl.store.lake_place import ANEW

    kept = opened.store.lake
    if kept is None:
        return
    files = kept.files()
    rows, whole = sum(one.rows for one in files), sum(one.bytes for one in files)
    evidence = f"{kept.place.path}: {plural(len(files), 'file')}, {plural(rows, 'row')}, {size(whole)}"
    if kept.place.remote:
        yield Finding("store_lake", Status.OK, f"{evidence} by the store's account; in object storage, not looked into")
        return
    read = _first(files, MOST)
    bad = [(one, why) for one in read if (why := _damage(kept, one))]
    if bad:
        lost = sum(one.rows for one, _ in bad)
        evidence += f"; {plural(len(bad), 'file')} of {lost:,} rows damaged, the first {bad[0][0].name}: {bad[0][1]}"
        yield Finding("store_lake", Status.FAIL, evidence, ANEW)
        return
    left = whole - sum(one.bytes for one in read)
    evidence += f"; the bytes of all but {size(left)} were compared" if left else "; every byte as it was written"
    yield Finding("store_lake", Status.OK, evidence)


def _first(files: list[File], most: int) -> list[File]:
    """The files that are read: from the first on, as long as they are no more than some bytes together."""
    chosen: list[File] = []
    for one in files:
        most -= one.bytes
        if most < 0:
            break
        chosen.append(one)
    return chosen


def _damage(kept: Lake, one: File) -> str:
    """What is wrong with a file, and how many of its rows are found; empty where it is as it was written."""
    try:
        with Path(kept.place.file(one.name)).open("rb") as file:
            if file_digest(file, "sha256").hexdigest() == one.sha256:
                return ""
    except OSError as error:
        return f"{error.strerror or error}; {one.rows:,} rows expected"
    found = kept.rows_in(one)
    told = "it cannot be read" if found is None else f"{found:,} found"
    return f"other bytes than were written; {one.rows:,} rows expected, {told}"
