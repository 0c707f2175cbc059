"""Clusters lines that differ only in variable parts: numbers, paths, addresses, names.

After Drain (He et al., ICWS 2017): lines of equal length and first word are compared word by word with existing
templates; if similar enough, differing words become variable. Drain's tree is cut at the first word, because there are
few lines: the informative lines of logs without a known signature.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpuctl.joblogs.prefix import prefix

if TYPE_CHECKING:
    from collections.abc import Sequence

ANY = "<*>"
SIMILARITY = 0.6
"""Share of the words that must be the same (Drain's paper takes 0.5; short lines need more)."""
_MOST_WORDS = 40
_INFORMATIVE = re.compile(
    r"error|fail|exception|fatal|abort|cannot|can't|could not|unable|denied|invalid|not found|no such|missing|panic"
    r"|critical|refused|exceeded|killed|unexpected|unknown|illegal|must |expected",
    re.IGNORECASE,
)
_LINE_LIMIT = 4096
_MASKS = (
    (re.compile(r"0x[0-9a-fA-F]{2,}"), ANY),
    (re.compile(r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b"), ANY),
    (re.compile(r"(?<![\w<])[~.]{0,2}/[\w.@%+=:,-]+(?:/[\w.@%+=:,-]*)*"), ANY),
    (re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b"), ANY),
    (re.compile(r"[-+]?\d[\d.,]*(?:[eE][-+]?\d+)?"), ANY),
)


def is_informative(line: str) -> bool:
    """Return whether a line seems to describe what went wrong."""
    return _INFORMATIVE.search(line[:_LINE_LIMIT]) is not None


@dataclass
class Cluster:
    """Lines of one template.

    Attributes:
        template: its words, `ANY` for variable ones.
        members: indices of its lines in the input.
    """

    template: str
    members: list[int] = field(default_factory=list)


def cluster(lines: Sequence[str]) -> list[Cluster]:
    """Group lines by template.

    Args:
        lines: one line each; timestamps and ranks before the text do not count.

    Returns:
        the clusters, the largest first; every line is in exactly one. The same for the same lines in the same order.
    """
    groups: dict[tuple[int, str], list[tuple[list[str], list[int]]]] = {}
    for place, line in enumerate(lines):
        words = _masked(line)
        group = groups.setdefault((len(words), words[0] if words else ""), [])
        best, most = None, -1
        for candidate in group:
            same = sum(a == b for a, b in zip(candidate[0], words, strict=True))
            if same > most:
                best, most = candidate, same
        if best is None or most < SIMILARITY * len(words):
            group.append((words, [place]))
            continue
        best[0][:] = [a if a == b else ANY for a, b in zip(best[0], words, strict=True)]
        best[1].append(place)
    clusters = [Cluster(" ".join(words), members) for group in groups.values() for words, members in group]
    return sorted(clusters, key=lambda found: (-len(found.members), found.members[0]))


def _masked(line: str) -> list[str]:
    text = line[prefix(line).end :]
    for pattern, mask in _MASKS:
        text = pattern.sub(mask, text)
    return text.split()[:_MOST_WORDS]
