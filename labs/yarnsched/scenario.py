"""What a scenario of the scheduler lab is: a cluster, the settings of a scheduler, applications."""

from __future__ import annotations

from dataclasses import dataclass, field

GB = 1024
UNIT = (4 * GB, 1, 1)
"""Memory (MB), vcores and GPUs of the usual container."""
NODE = (64 * GB, 16, 8)


@dataclass(frozen=True)
class App:
    """An application: its master asks for all containers once it is up, and again for those that it loses."""

    name: str
    submit_s: float
    queue: str
    containers: int
    duration_s: float
    user: str = "alice"
    size: tuple[int, int, int] = UNIT
    am_mb: int = 0
    priority: int = 0
    hosts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Scenario:
    """One run: what the cluster is, how the scheduler is set, what is submitted."""

    what: str
    settings: dict[str, object]
    """Of capacity-scheduler.xml without its prefix; for the fair scheduler of yarn-site.xml."""
    apps: tuple[App, ...]
    fair: str = ""
    """The text of fair-scheduler.xml; empty: the capacity scheduler."""
    site: dict[str, object] = field(default_factory=dict)
    nodes: int = 4
    racks: int = 2
    node: tuple[int, int, int] = NODE
