"""Princeton's jobstats in AdminComment: ``JS1:`` and base64 of gzipped JSON, in the layout of jobstats.

``{"nodes": {HOST: {"cpus", "total_time", "total_memory", "used_memory", "gpu_utilization": {MINOR: PCT}, ...}},
"total_time", "gpus"}``: ``total_time`` is CPU seconds inside a node and elapsed seconds outside
(PrincetonUniversity/jobstats, dfc9aa0c).
"""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from typing import Any

PREFIX = "JS1:"
NOTHING = frozenset({"Short", "None"})
"""What jobstats writes of a job that was too short for it, and of one that it has no data of."""
_MOST_BYTES = 4 << 20
"""A summary of 4,000 nodes has 2 MB."""


def summary(text: str) -> dict[str, Any] | None:
    """Decode the jobstats of a comment; None if there are none or it states that they are missing.

    Raises:
        ValueError: it is damaged; the message states how.
    """
    if not text.startswith(PREFIX) or text[len(PREFIX) :].strip() in NOTHING:
        return None
    try:
        packed = base64.b64decode(text[len(PREFIX) :].strip(), validate=True)
        unpack = zlib.decompressobj(wbits=31)
        plain = unpack.decompress(packed, _MOST_BYTES)
        if unpack.unconsumed_tail:
            raise ValueError(f"a jobstats summary of more than {_MOST_BYTES >> 20} MiB")
        if not unpack.eof:
            raise ValueError("a jobstats summary that is cut off")
        found: Any = json.loads(plain)
    except (binascii.Error, zlib.error) as error:
        lower = text[len(PREFIX) :].islower()
        why = "in lower case (sacctmgr before 23.02)" if lower else str(error)
        raise ValueError(f"a jobstats summary that cannot be decoded: {why}") from None
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError):
        raise ValueError("a jobstats summary that is not JSON") from None
    nodes = found.get("nodes") if isinstance(found, dict) else None
    if not isinstance(nodes, dict) or not all(isinstance(node, dict) for node in nodes.values()):
        raise ValueError("a jobstats summary without nodes")
    whole: dict[str, Any] = found
    return whole


def memory(found: dict[str, Any] | None) -> tuple[float | None, float | None, float | None]:
    """Return a job's memory from its summary: MiB used and allocated over its nodes, and percent of the fullest node.

    All are None if a node lacks one of the two: a sum over some of the nodes is not the job's.
    """
    pairs = [(node.get("used_memory"), node.get("total_memory")) for node in (found["nodes"].values() if found else ())]
    if not pairs or not all(_is_size(used) and _is_size(total) and total > 0 for used, total in pairs):
        return None, None, None
    return (
        sum(used for used, _ in pairs) / 2**20,
        sum(total for _, total in pairs) / 2**20,
        max(100 * used / total for used, total in pairs),
    )


def _is_size(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 2**60
