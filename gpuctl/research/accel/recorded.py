"""Recorded arrivals of requests: the table ``service_load`` of a store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpuctl.core.errors import InputError, UsageError
from gpuctl.core.suggestions import meant

if TYPE_CHECKING:
    from gpuctl.store.database import Store

_LOAD = """
    SELECT epoch_us(ts) AS at_us, span_s, requests, service FROM service_load WHERE cluster = $cluster
    ORDER BY at_us, service
"""


@dataclass(frozen=True)
class Arrivals:
    """Requests of a trace.

    Attributes:
        times_us: microseconds since the first, ascending.
        services: service of each.
    """

    times_us: tuple[float, ...]
    services: tuple[str, ...]


def read_arrivals(store: Store, cluster: str | None, service: str | None, count: int) -> Arrivals:
    """Read the first requests of a trace; requests counted per span are spread evenly over it.

    Args:
        store: the store.
        cluster: of the store; None: its only one.
        service: only this one; None: all.
        count: most requests to read.

    Raises:
        InputError: there are fewer than two, or all at one time.
        UsageError: there is no such service.
    """
    name = store.cluster(cluster)
    rows = store.frame(_LOAD, {"cluster": name})
    known = sorted(set(rows["service"].to_list()))
    if rows.is_empty():
        raise InputError(f"cluster {name} has no requests to services", hint="see gpuctl formats: service_load")
    if service is not None and service not in known:
        raise UsageError(f"--service {service[:60]}: the trace has none of that name", hint=meant(service, known))
    found: list[tuple[float, str]] = []
    due: dict[str, float] = {}
    first = rows["at_us"][0]
    for at_us, span_s, requests, of in rows.iter_rows():
        if service is not None and of != service:
            continue
        # a span may hold fractions of requests: the remainder carries over to the next one
        whole = due.get(of, 0.0) + requests
        due[of] = whole - int(whole + 1e-9)
        n = min(int(whole + 1e-9), count)
        found += [(at_us - first + 1e6 * span_s * k / n, of) for k in range(n)]
        if len(found) >= 2 * count and at_us - first > sorted(found)[count - 1][0]:
            break
    found = sorted(found)[:count]
    if len(found) < 2 or found[0][0] == found[-1][0]:
        raise InputError(f"cluster {name} has {len(found)} requests, all at one time", hint="a longer trace")
    begin = found[0][0]
    return Arrivals(tuple(at - begin for at, _ in found), tuple(of for _, of in found))


def scaled(arrivals: Arrivals, rate: float) -> list[float]:
    """Return the times stretched to a mean rate per microsecond."""
    factor = (len(arrivals.times_us) - 1) / rate / arrivals.times_us[-1]
    return [at * factor for at in arrivals.times_us]
