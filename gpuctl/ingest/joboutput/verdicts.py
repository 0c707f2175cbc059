"""Classifies log files that belong to no store: each by itself, or all of them as the logs of one attempt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpuctl.core.errors import InputError
from gpuctl.ingest.read.files import NotRead, Opener, reason, walk
from gpuctl.joblogs.classify import classify
from gpuctl.joblogs.scan import Scanner
from gpuctl.joblogs.table import NO_SIGNATURE
from gpuctl.joblogs.templates import cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from gpuctl.ingest.read.files import Candidate
    from gpuctl.joblogs.evidence import Facts, Match, Scan, Verdict
    from gpuctl.joblogs.table import Table


@dataclass(frozen=True)
class Judged:
    """One log, or several logs of one attempt, and why it failed.

    Attributes:
        files: as the user spells them.
        verdict: of all of them.
        size: bytes, decompressed.
        lines: in all of them.
        telling: if no signature was found, informative lines for a person.
        damage: what is wrong with compressed files; what came before it was read.
    """

    files: tuple[str, ...]
    verdict: Verdict
    size: int
    lines: int
    telling: tuple[Match, ...]
    damage: tuple[str, ...] = ()


def judge(
    paths: Sequence[Path],
    table: Table,
    *,
    facts: Facts | None = None,
    together: bool = False,
    on_file: Callable[[str], None] = lambda _: None,
) -> Iterator[Judged | NotRead]:
    """Scan and classify files, directories and archives.

    Args:
        paths: what to read, compressed or not.
        table: the signatures to look for.
        facts: other known facts of all of them (an exit code).
        together: they are the logs of one attempt; a single `Judged` comes at the end.
        on_file: called with the name of each file before it is read.

    Raises:
        InputError: a path does not exist; a signature cannot be compiled.
    """
    scanner = Scanner(table)
    opener = Opener()
    parts: list[tuple[Candidate, Scan, str | None]] = []
    try:
        for found in walk(paths, opener):
            if isinstance(found, NotRead):
                yield found
                continue
            on_file(found.shown)
            try:
                with opener.open(found) as stream:
                    scan = scanner.scan(stream)
                    damage = f"line {stream.damage[0]}: {stream.damage[1]}" if stream.damage else None
            except InputError as error:
                yield NotRead(found.shown, reason(error), failed=True)
                continue
            if together:
                parts.append((found, scan, damage))
            else:
                yield _judged([(found, scan, damage)], table, facts)
    finally:
        opener.close()
    if parts:
        yield _judged(parts, table, facts)


def templates(judged: Sequence[Judged]) -> list[tuple[str, list[str]]]:
    """Cluster the logs that failed with no signature: (template of their most informative line, their files)."""
    unknown = [
        (one.verdict.evidence, one.files[0])
        for one in judged
        if one.verdict.reason == NO_SIGNATURE and one.verdict.evidence is not None
    ]
    return [
        (group.template, [unknown[place][1] for place in group.members])
        for group in cluster([line for line, _ in unknown])
    ]


def _judged(parts: Sequence[tuple[Candidate, Scan, str | None]], table: Table, facts: Facts | None) -> Judged:
    several = len(parts) > 1
    matches: list[Match] = []
    telling: list[Match] = []
    for candidate, scan, _ in parts:
        stream = candidate.shown if several else ""
        matches += (match._replace(stream=stream) for match in scan.matches)
        telling += (match._replace(stream=stream) for match in scan.telling)
    verdict = classify(matches + telling, table, facts)
    return Judged(
        files=tuple(candidate.shown for candidate, _, _ in parts),
        verdict=verdict,
        size=sum(scan.size for _, scan, _ in parts),
        lines=sum(scan.lines for _, scan, _ in parts),
        telling=tuple(telling) if verdict.reason == NO_SIGNATURE else (),
        damage=tuple(f"{candidate.shown}: {damage}" for candidate, _, damage in parts if damage),
    )
