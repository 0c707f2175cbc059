"""Times of traces that count seconds from their own start: stored as seconds since 1970, shown without a date.

No cluster log that gpuctl reads is older than 1980: earlier times are relative ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

BEFORE_S = 315_532_800
"""1980-01-01 in seconds since 1970: earlier times count from an origin of the trace's own."""
DAY_S = 86_400


def is_relative(seconds: float) -> bool:
    """Return whether a time, in seconds since 1970, has no date."""
    return 0 <= seconds < BEFORE_S


def day_and_time(seconds: float) -> str:
    """Return ``day 12 03:04:05``: whole days since the start, and the time since then."""
    whole = int(seconds)
    hours, rest = divmod(whole % DAY_S, 3600)
    part = f"{seconds - whole:.6f}"[1:].rstrip("0").rstrip(".")
    return f"day {whole // DAY_S} {hours:02}:{rest // 60:02}:{rest % 60:02}{part}"


def without_date(time: datetime) -> str | None:
    """Return a relative time as `day_and_time` formats it; None for a time with a date."""
    from datetime import UTC

    stamp = (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
    return day_and_time(stamp) if is_relative(stamp) else None
