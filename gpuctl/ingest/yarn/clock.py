"""Finds out how far the clock of YARN's hosts was from UTC: their logs carry local time and name no zone.

If the store has a time of an application both as a log stamp and in milliseconds since 1970 (the log's first state
change, and ``startTime`` of the summary or ``startedTime`` of a REST answer; its launch), their difference is the
offset. If it has none, the number in application ids is compared with the stamp at which the ResourceManager became
active. The offset is compared with the zone that the user gave, or UTC. Where they agree, that zone holds, with its
changes of clock; if they do not, the offsets found hold, each from its first sample on until the next one. Records
that state their zone are in UTC already.
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
_START_SLACK_S = 5
_FARTHEST_S = 15 * 3600
_SAMPLES = """
    WITH stamps AS (
        SELECT job, min(submit_ts) FILTER (origin = 'state' AND "local") AS stated,
               min(submit_ts) FILTER (origin = 'audit' AND "local") AS audited,
               min(submit_ts) FILTER (NOT "local") AS exact
        FROM yarn_facts WHERE cluster = $cluster AND submit_ts IS NOT NULL AND container IS NULL AND attempt IS NULL
              AND origin NOT IN ('manager', 'node')
        GROUP BY job
    )
    SELECT DISTINCT date_trunc('hour', coalesce(stated, audited)) AS hour,
           date_diff('millisecond', exact, coalesce(stated, audited)) / 1000 AS ahead_s
    FROM stamps WHERE exact IS NOT NULL AND coalesce(stated, audited) IS NOT NULL
    UNION
    SELECT date_trunc('hour', s.launch_ts), date_diff('millisecond', e.launch_ts, s.launch_ts) / 1000
    FROM yarn_facts AS s JOIN yarn_facts AS e USING (cluster, job, source)
    WHERE cluster = $cluster AND s.origin = 'state' AND s."local" AND s.attempt = 0 AND s.container IS NULL
          AND s.launch_ts IS NOT NULL AND e.origin = 'epoch' AND e.attempt IS NULL AND e.launch_ts IS NOT NULL
"""
_STARTS = """
    WITH named AS (
        SELECT job, min(submit_ts) AS first,
               TRY_CAST(regexp_extract(job, '^application_([0-9]{1,13})_', 1) AS BIGINT) AS started_ms
        FROM yarn_facts
        WHERE cluster = $cluster AND "local" AND submit_ts IS NOT NULL AND origin IN ('state', 'audit')
              AND attempt IS NULL AND container IS NULL
        GROUP BY job
    ),
    ids AS (SELECT started_ms, min(first) AS first FROM named WHERE started_ms > 0 GROUP BY started_ms),
    active AS (
        SELECT DISTINCT submit_ts AS ts FROM yarn_facts WHERE cluster = $cluster AND origin = 'manager' AND "local"
    )
    SELECT date_trunc('hour', ts) AS hour, (epoch_ms(ts) - started_ms) / 1000 AS ahead_s
    FROM ids ASOF JOIN active ON ids.first >= active.ts
"""
"""The number within application ids is when the ResourceManager became active, milliseconds since 1970."""


def keep_utc(sink: Sink) -> None:
    """Note that the times of a log are in UTC, since its records state their zone.

    Args:
        sink: of the log; its facts are written already.
    """
    source = {"cluster": sink.cluster, "source": sink.source}
    sink.execute(
        'UPDATE yarn_facts SET "local" = false WHERE cluster = $cluster AND source = $source AND "local"', source
    )


@dataclass(frozen=True)
class Clock:
    """What turns log stamps into UTC.

    Attributes:
        zone: IANA zone that the stamps are read in; None if offsets that were found hold instead.
        offsets: (stamp from which on it holds, seconds ahead of UTC); the first one also holds before its stamp.
        assumed: true if nothing in the store shows whether the zone is right.
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
    samples = sink.query(_SAMPLES, {"cluster": sink.cluster}).rows()
    if not samples:
        starts = sink.query(_STARTS, {"cluster": sink.cluster}).rows()
        samples = [(hour, ahead) for hour, ahead in starts if abs(ahead - _quarters(ahead)) <= _START_SLACK_S]
    return choose(zone, samples)


def choose(zone: str, samples: Iterable[tuple[datetime, float]]) -> Clock:
    """Choose between a zone and what samples show.

    Args:
        zone: IANA name.
        samples: (log stamp without a zone, seconds by which it is ahead of UTC); one that is not within two minutes
            of a quarter of an hour, or is over 15 hours, describes something else and is skipped.
    """
    known_offsets = sorted({(stamp, offset) for stamp, ahead in samples if (offset := _offset(ahead)) is not None})
    if not known_offsets:
        return Clock(zone, (), assumed=True)
    local = ZoneInfo(zone)
    if all(offset in _zone_offsets(local, stamp) for stamp, offset in known_offsets):
        return Clock(zone, (), assumed=False)
    changes = [known_offsets[0]]
    for stamp, offset in known_offsets[1:]:
        if offset != changes[-1][1]:
            changes.append((stamp, offset))
    return Clock(None, tuple(changes), assumed=False)


def _quarters(ahead_s: float) -> int:
    return round(ahead_s / _STEP_S) * _STEP_S


def _offset(ahead_s: float) -> int | None:
    offset = _quarters(ahead_s)
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
