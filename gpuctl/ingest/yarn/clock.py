"""Finds out how far the clock of YARN's hosts was from UTC: their logs carry local time and name no zone.

Where the store has a time of an application both as a log stamp and in milliseconds since 1970 (the log's first state
change, and ``startTime`` of the summary or ``startedTime`` of a REST answer), their difference is the offset. It is
compared with the zone that the user gave, or UTC. Where they agree, that zone holds, with its changes of clock; where
they do not, the offsets found hold, each from its first sample on until the next one.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpuctl.ingest.core.format import Sink

_STEP_S = 900
_SLACK_S = 120
_FARTHEST_S = 15 * 3600
_SAMPLES = """
    WITH stamps AS (
        SELECT job, min(submit_ts) FILTER (origin = 'state') AS stated,
               min(submit_ts) FILTER (origin = 'audit') AS audited, min(submit_ts) FILTER (NOT "local") AS exact
        FROM yarn_facts WHERE cluster = $cluster AND submit_ts IS NOT NULL AND container IS NULL AND attempt IS NULL
              AND origin NOT IN ('manager', 'node')
        GROUP BY job
    )
    SELECT DISTINCT date_trunc('hour', coalesce(stated, audited)) AS hour,
           date_diff('millisecond', exact, coalesce(stated, audited)) / 1000 AS ahead_s
    FROM stamps WHERE exact IS NOT NULL AND coalesce(stated, audited) IS NOT NULL
"""


@dataclass(frozen=True)
class Clock:
    """What turns log stamps into UTC.

    Attributes:
        zone: IANA zone that the stamps are read in; None where offsets that were found hold instead.
        offsets: (stamp from which on it holds, seconds ahead of UTC); the first one also holds before its stamp.
        assumed: true where nothing in the store tells whether the zone is right.
    """

    zone: str | None
    offsets: tuple[tuple[datetime, int], ...]
    assumed: bool

    @property
    def quirk(self) -> str | None:
        """What jobs with log stamps are marked with."""
        return "zone_assumed" if self.assumed else None if self.zone else "zone_derived"


def find_clock(sink: Sink) -> Clock:
    """Find the clock of a cluster's hosts from all that the store has of it."""
    rows = sink.query("SELECT timezone FROM clusters WHERE cluster = $cluster", {"cluster": sink.cluster})
    zone = str(rows["timezone"][0]) if rows.height else sink.timezone
    samples = sink.query(_SAMPLES, {"cluster": sink.cluster})
    return choose(zone, samples.iter_rows())


def choose(zone: str, samples: Iterable[tuple[datetime, float]]) -> Clock:
    """Choose between a zone and what samples tell.

    Args:
        zone: IANA name.
        samples: (log stamp without a zone, seconds by which it is ahead of UTC); one that is not within two minutes
            of a quarter of an hour, or is over 15 hours, tells of something else and is passed over.
    """
    told = sorted({(stamp, offset) for stamp, ahead in samples if (offset := _offset(ahead)) is not None})
    if not told:
        return Clock(zone, (), assumed=True)
    local = ZoneInfo(zone)
    if all(offset in _zone_offsets(local, stamp) for stamp, offset in told):
        return Clock(zone, (), assumed=False)
    changes = [told[0]]
    for stamp, offset in told[1:]:
        if offset != changes[-1][1]:
            changes.append((stamp, offset))
    return Clock(None, tuple(changes), assumed=False)


def _offset(ahead_s: float) -> int | None:
    offset = round(ahead_s / _STEP_S) * _STEP_S
    return offset if abs(ahead_s - offset) <= _SLACK_S and abs(offset) <= _FARTHEST_S else None


def _zone_offsets(zone: ZoneInfo, hour: datetime) -> set[int]:
    """Offsets that the zone has within the hour that begins at this stamp, in seconds."""
    found = set()
    for minutes in (0, 59):
        for fold in (0, 1):
            local = (hour.replace(tzinfo=UTC) + timedelta(minutes=minutes)).replace(tzinfo=zone, fold=fold)
            ahead = local.utcoffset()
            found.add(int(ahead.total_seconds()) if ahead is not None else 0)
    return found
