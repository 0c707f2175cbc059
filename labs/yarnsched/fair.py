"""The scenarios of the fair scheduler."""

from __future__ import annotations

from labs.yarnsched.scenario import GB, App, Scenario

_FULL = (8 * GB, 1, 1)
"""Eight of them leave a node neither GPUs nor memory."""


def _allocations(body: str) -> str:
    return f"<?xml version='1.0'?>\n<allocations>\n{body}\n</allocations>\n"


_FAIR3 = """\
  <queue name="a"><weight>2.0</weight></queue>
  <queue name="b"><weight>1.0</weight></queue>
  <queue name="c"><weight>1.0</weight></queue>"""
_DRF = "  <defaultQueueSchedulingPolicy>drf</defaultQueueSchedulingPolicy>\n"
_PREEMPTION = {"yarn.scheduler.fair.preemption": True}

SCENARIOS: dict[str, Scenario] = {
    "fs-weights": Scenario(
        "weights 2, 1, 1 (policy fair: by memory), demands that come and go",
        {},
        (
            App("a1", 0, "root.a", 40, 12),
            App("b1", 2, "root.b", 30, 10, "bob"),
            App("c1", 4, "root.c", 30, 8, "carol"),
            App("a2", 18, "root.a", 20, 6, "dave"),
            App("c2", 25, "root.c", 20, 5, "erin"),
        ),
        fair=_allocations(_DRF + _FAIR3),
    ),
    "fs-memory": Scenario(
        "policy fair goes by memory alone: equal queues, containers of 4 and 8 GB with one GPU each",
        {},
        (App("a1", 0, "root.a", 40, 10), App("b1", 0, "root.b", 40, 10, "bob", (8 * GB, 1, 1))),
        fair=_allocations('  <queue name="a"/>\n  <queue name="b"/>'),
    ),
    "fs-drf": Scenario(
        "policy drf with GPUs, memory and vcores: containers whose dominant resource differs",
        {},
        (
            App("g1", 0, "root.a", 30, 10, "alice", (2 * GB, 1, 2)),
            App("m1", 0, "root.b", 40, 9, "bob", (12 * GB, 1, 0)),
            App("c1", 0, "root.c", 40, 8, "carol", (2 * GB, 4, 0)),
            App("g2", 15, "root.a", 20, 6, "dave", (2 * GB, 1, 1)),
        ),
        fair=_allocations(_DRF + _FAIR3),
    ),
    "fs-minmax": Scenario(
        "minResources and maxResources beside weights; two levels; the smallest queue below its minimum goes first",
        {},
        (
            App("a1", 0, "root.a", 40, 12),
            App("b1", 3, "root.b", 30, 10, "bob"),
            App("x1", 5, "root.p.x", 30, 9, "carol"),
            App("y1", 7, "root.p.y", 20, 8, "dave"),
            App("b2", 20, "root.b", 20, 5, "erin"),
        ),
        fair=_allocations(
            _DRF + '  <queue name="a"><maxResources>memory-mb=65536, vcores=64, yarn.io/gpu=16</maxResources></queue>\n'
            '  <queue name="b"><minResources>memory-mb=49152, vcores=12, yarn.io/gpu=12</minResources></queue>\n'
            '  <queue name="p"><weight>2.0</weight><queue name="x"/>'
            '<queue name="y"><weight>3.0</weight></queue></queue>'
        ),
    ),
    "fs-apps": Scenario(
        "policies fifo, fair and drf inside queues, maxRunningApps 2 of a queue, "
        "userMaxAppsDefault 4 for all queues together",
        {},
        tuple(
            App(f"{q}{n}", 0.5 * n, f"root.{q}", 8 + 4 * (n % 2), 6 + n, ("alice", "bob")[n % 2], priority=n % 3)
            for n in range(4)
            for q in ("fifo", "fair", "drf")
        ),
        fair=_allocations(
            '  <queue name="fifo"><schedulingPolicy>fifo</schedulingPolicy></queue>\n'
            '  <queue name="fair"><schedulingPolicy>fair</schedulingPolicy><maxRunningApps>2</maxRunningApps></queue>\n'
            '  <queue name="drf"><schedulingPolicy>drf</schedulingPolicy></queue>\n'
            "  <userMaxAppsDefault>4</userMaxAppsDefault>"
        ).replace("<allocations>\n", "<allocations>\n" + _DRF),
    ),
    "fs-am": Scenario(
        "maxAMShare 0.1: masters of 8 GB hold containers and wait for each other",
        {},
        tuple(App(f"a{n}", 0.2 * n, "root.a", 6, 5 + n, am_mb=8 * GB) for n in range(6)),
        fair=_allocations(_DRF + '  <queue name="a"><maxAMShare>0.1</maxAMShare></queue>\n  <queue name="b"/>'),
    ),
    "fs-ties": Scenario(
        "equal queues and applications at one instant; names not in the order of the file",
        {},
        tuple(App(f"{q}{n}", 0, f"root.{q}", 12, 6) for n in "12" for q in "cabd"),
        fair=_allocations(_DRF + "\n".join(f'  <queue name="{q}"/>' for q in "dbca")),
    ),
    "fs-preempt-fair": Scenario(
        "preemption by fair share: timeout 10 s, threshold 0.5; a holds all, b comes at 30 s, wait before kill 5 s",
        {},
        (
            App("a1", 0, "root.a", 32, 100, size=_FULL),
            App("a2", 15, "root.a", 10, 60, "carol", _FULL),
            App("b1", 30, "root.b", 20, 40, "bob", _FULL),
        ),
        fair=_allocations(
            _DRF + "  <defaultFairSharePreemptionTimeout>10</defaultFairSharePreemptionTimeout>\n"
            '  <queue name="a"/>\n  <queue name="b"/>'
        ),
        site={**_PREEMPTION, "yarn.scheduler.fair.waitTimeBeforeKill": 5000, "lab.limit-ms": 250_000},
    ),
    "fs-preempt-gpu": Scenario(
        "the same with containers of 4 GB: all GPUs are taken, but only half of the memory",
        {},
        (App("a1", 0, "root.a", 32, 60), App("b1", 30, "root.b", 20, 20, "bob")),
        fair=_allocations(
            _DRF + "  <defaultFairSharePreemptionTimeout>10</defaultFairSharePreemptionTimeout>\n"
            '  <queue name="a"/>\n  <queue name="b"/>'
        ),
        site={**_PREEMPTION, "yarn.scheduler.fair.waitTimeBeforeKill": 5000},
    ),
    "fs-preempt-min": Scenario(
        "both time-outs: min share (8 GPUs) after 4 s, fair share after 12 s with threshold 0.8; defaults else",
        {},
        (
            App("a1", 0, "root.a", 40, 120, size=_FULL),
            App("b1", 20, "root.b", 24, 60, "bob", _FULL),
            App("c1", 21, "root.c", 24, 60, "carol", _FULL),
        ),
        fair=_allocations(
            _DRF + '  <queue name="a"/>\n'
            '  <queue name="b"><minResources>memory-mb=65536, vcores=8, yarn.io/gpu=8</minResources>\n'
            "    <minSharePreemptionTimeout>4</minSharePreemptionTimeout></queue>\n"
            '  <queue name="c"><fairSharePreemptionTimeout>12</fairSharePreemptionTimeout>\n'
            "    <fairSharePreemptionThreshold>0.8</fairSharePreemptionThreshold></queue>"
        ),
        site={**_PREEMPTION, "lab.limit-ms": 300_000},
    ),
    "fs-preempt-plain": Scenario(
        "fs-preempt-min without GPUs: memory and vcores are the only resources",
        {},
        (
            App("a1", 0, "root.a", 40, 120, size=(8 * GB, 1, 0)),
            App("b1", 20, "root.b", 24, 60, "bob", (8 * GB, 1, 0)),
            App("c1", 21, "root.c", 24, 60, "carol", (8 * GB, 1, 0)),
        ),
        fair=_allocations(
            _DRF + '  <queue name="a"/>\n'
            '  <queue name="b"><minResources>memory-mb=65536, vcores=8</minResources>\n'
            "    <minSharePreemptionTimeout>4</minSharePreemptionTimeout></queue>\n"
            '  <queue name="c"><fairSharePreemptionTimeout>12</fairSharePreemptionTimeout>\n'
            "    <fairSharePreemptionThreshold>0.8</fairSharePreemptionThreshold></queue>"
        ),
        site={**_PREEMPTION, "lab.limit-ms": 300_000},
        node=(64 * GB, 16, 0),
    ),
    "fs-locality": Scenario(
        "locality.threshold.node 0.5 and rack 1.0 on six nodes; containers that want busy nodes",
        {},
        (
            App("fill", 0, "root.a", 16, 30, hosts=("node01", "node02")),
            App("node", 5, "root.a", 6, 6, "bob", hosts=("node01",)),
            App("any", 6, "root.b", 6, 6, "carol"),
        ),
        fair=_allocations(_DRF + '  <queue name="a"/>\n  <queue name="b"/>'),
        site={"yarn.scheduler.fair.locality.threshold.node": 0.5, "yarn.scheduler.fair.locality.threshold.rack": 1.0},
        nodes=6,
        racks=3,
    ),
    "fs-reserve": Scenario(
        "a container of 8 GPUs on four nodes that are busy with small ones; others come behind it",
        {},
        (
            App("small1", 0, "root.a", 20, 15),
            App("small2", 4, "root.b", 12, 22, "bob"),
            App("big", 6, "root.a", 2, 12, "carol", (32 * GB, 8, 8)),
            App("behind", 8, "root.a", 8, 8, "dave"),
            App("beside", 10, "root.b", 8, 8, "erin"),
        ),
        fair=_allocations(_DRF + '  <queue name="a"/>\n  <queue name="b"/>'),
    ),
    "fs-multiple": Scenario(
        "assignmultiple: half of what a node has left may be given in one heartbeat",
        {},
        (App("a1", 0, "root.a", 20, 8), App("b1", 0, "root.b", 20, 8, "bob")),
        fair=_allocations(_DRF + '  <queue name="a"/>\n  <queue name="b"/>'),
        site={"yarn.scheduler.fair.assignmultiple": True},
    ),
}
