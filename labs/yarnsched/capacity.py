"""The scenarios of the capacity scheduler."""

from __future__ import annotations

from labs.yarnsched.scenario import GB, App, Scenario

_AM_FREE = {"maximum-am-resource-percent": 1.0}


def _queues(tree: dict[str, tuple[float, float]], **more: object) -> dict[str, object]:
    """Settings of a tree of queues, given as ``{"root.a": (capacity, maximum)}``, parents first."""
    settings: dict[str, object] = {}
    for path, (capacity, maximum) in tree.items():
        parent, _, name = path.rpartition(".")
        key = f"{parent}.queues"
        settings[key] = f"{settings[key]},{name}" if key in settings else name
        settings[f"{path}.capacity"] = capacity
        settings[f"{path}.maximum-capacity"] = maximum
        settings[f"{path}.user-limit-factor"] = 100
    return {**_AM_FREE, **settings, **more}


_TWO = {"root.a": (60.0, 100.0), "root.b": (25.0, 50.0), "root.c": (15.0, 100.0)}
_THREE = {
    "root.prod": (60.0, 100.0),
    "root.dev": (40.0, 75.0),
    "root.prod.web": (70.0, 100.0),
    "root.prod.etl": (30.0, 60.0),
    "root.dev.nlp": (50.0, 100.0),
    "root.dev.cv": (50.0, 100.0),
}
_HALVES = {"root.a": (50.0, 100.0), "root.b": (50.0, 100.0)}
_ALL = {"root.q": (100.0, 100.0)}
_SMALL = (1 * GB, 1, 0)
_MONITOR = {"scheduler.monitor.enable": True}

_VECTOR12 = (App("a1", 0, "root.a", 100, 2000, size=_SMALL), App("b1", 30, "root.b", 60, 2000, "bob", _SMALL))

SCENARIOS: dict[str, Scenario] = {
    "cs-elastic2": Scenario(
        "two levels of queues, guaranteed and maximum capacity, elasticity; nothing is preempted",
        _queues(_TWO),
        (
            App("a1", 0, "root.a", 30, 25),
            App("b1", 2, "root.b", 40, 15, "bob"),
            App("c1", 4, "root.c", 25, 12, "carol"),
            App("a2", 20, "root.a", 25, 10, "dave"),
            App("c2", 22, "root.c", 20, 9, "erin"),
            App("b2", 30, "root.b", 20, 8),
            App("a3", 45, "root.a", 40, 7, "bob"),
        ),
    ),
    "cs-elastic3": Scenario(
        "three levels of queues, all submitted together and again when the first are over",
        _queues(_THREE),
        tuple(
            App(f"{queue.rpartition('.')[2]}{wave}", at, queue, 24, 10 + i, user)
            for wave, at in (("1", 0), ("2", 18))
            for i, (queue, user) in enumerate(
                (
                    ("root.prod.web", "alice"),
                    ("root.prod.etl", "bob"),
                    ("root.dev.nlp", "carol"),
                    ("root.dev.cv", "dave"),
                )
            )
        ),
    ),
    "cs-ties": Scenario(
        "four queues of equal capacity whose names are not in the order of the file, equal applications at one instant",
        _queues({"root.d": (25, 100), "root.b": (25, 100), "root.c": (25, 100), "root.a": (25, 100)}),
        tuple(App(f"{q}{n}", 0, f"root.{q}", 12, 6) for n in "12" for q in "cabd"),
    ),
    "cs-dominant": Scenario(
        "containers whose dominant resource differs (GPU, memory, vcores) in three equal queues, "
        "DominantResourceCalculator",
        _queues({"root.gpu": (34, 100), "root.mem": (33, 100), "root.cpu": (33, 100)}),
        (
            App("g1", 0, "root.gpu", 30, 10, "alice", (2 * GB, 1, 2)),
            App("m1", 0, "root.mem", 40, 9, "bob", (12 * GB, 1, 0)),
            App("c1", 0, "root.cpu", 40, 8, "carol", (2 * GB, 4, 0)),
            App("g2", 15, "root.gpu", 20, 6, "dave", (2 * GB, 1, 1)),
            App("m2", 15, "root.mem", 20, 6, "erin", (6 * GB, 1, 1)),
        ),
    ),
    "cs-userlimit": Scenario(
        "minimum-user-limit-percent 25 and user-limit-factor 2 in a queue of half the cluster; "
        "five users come one by one",
        _queues(_HALVES, **{"root.a.minimum-user-limit-percent": 25, "root.a.user-limit-factor": 2}),
        (
            *(
                App(f"{user}1", 5 * i, "root.a", 24, 14, user)
                for i, user in enumerate(("alice", "bob", "carol", "dave", "erin"))
            ),
            App("other", 40, "root.b", 16, 20, "bob"),
            App("late", 45, "root.a", 24, 6, "alice"),
        ),
        site={"lab.users": True},
    ),
    "cs-userfactor": Scenario(
        "user-limit-factor 1 (default), 0.5 and -1 in three queues; the cluster is idle otherwise",
        _queues(
            {"root.one": (50, 100), "root.half": (25, 100), "root.off": (25, 100)},
            **{"root.one.user-limit-factor": 1, "root.half.user-limit-factor": 0.5, "root.off.user-limit-factor": -1},
        ),
        (
            App("one1", 0, "root.one", 30, 8),
            App("half1", 10, "root.half", 30, 4, "bob"),
            App("off1", 60, "root.off", 30, 8),
            App("one2", 72, "root.one", 20, 6, "carol"),
            App("one3", 72, "root.one", 20, 6, "dave"),
        ),
        site={"lab.users": True},
    ),
    "cs-limits": Scenario(
        "maximum-applications 4 (queue a), max-parallel-apps 2 (b), AM share 0.1 (c, masters of 8 GB hold containers)",
        _queues(
            {"root.a": (30, 100), "root.b": (30, 100), "root.c": (40, 100)},
            **{
                "root.a.maximum-applications": 4,
                "root.b.max-parallel-apps": 2,
                "root.c.maximum-am-resource-percent": 0.1,
            },
        ),
        tuple(
            App(
                f"{q}{n}",
                0.1 * n,
                f"root.{q}",
                6,
                5 + n,
                ("alice", "bob", "carol")[n % 3],
                am_mb=8 * GB if q == "c" else 0,
            )
            for n in range(6)
            for q in "abc"
        ),
    ),
    "cs-priority": Scenario(
        "ordering policy fifo: priorities 0 to 3 in a full queue, a higher one submitted last",
        _queues(_ALL, **{"maximum-application-lifetime": -1}),
        tuple(App(f"p{n}", n, "root.q", 16, 12 - n, priority=p) for n, p in enumerate((0, 1, 0, 2, 1, 3))),
        site={"yarn.cluster.max-application-priority": 10},
    ),
    "cs-fairorder": Scenario(
        "ordering policy fair: three applications of one queue with different demands, then a fourth",
        _queues(_ALL, **{"root.q.ordering-policy": "fair"}),
        (
            App("f0", 0, "root.q", 50, 10),
            App("f1", 3, "root.q", 30, 9, "bob"),
            App("f2", 6, "root.q", 20, 8, "carol"),
            App("f3", 12, "root.q", 40, 7, "dave", (8 * GB, 1, 1)),
        ),
    ),
    "cs-fairorder-size": Scenario(
        "ordering policy fair with enable-size-based-weight",
        _queues(
            _ALL, **{"root.q.ordering-policy": "fair", "root.q.ordering-policy.fair.enable-size-based-weight": True}
        ),
        (App("f0", 0, "root.q", 60, 10), App("f1", 3, "root.q", 10, 9, "bob"), App("f2", 6, "root.q", 30, 8, "carol")),
    ),
    "cs-preempt12": Scenario(
        "test vector 12: 100 containers of 1 GB, queues 50/50, a holds all, b asks for 60; the monitor's defaults",
        _queues(_HALVES),
        _VECTOR12,
        site=_MONITOR | {"lab.limit-ms": 600_000},
        nodes=10,
        node=(10 * GB, 10, 0),
    ),
    "cs-preempt12-fast": Scenario(
        "the same, victims gone before the next round (max_wait_before_kill 0)",
        _queues(_HALVES),
        _VECTOR12,
        site=_MONITOR | {"lab.limit-ms": 200_000, "scheduler.monitor.max_wait_before_kill": 0},
        nodes=10,
        node=(10 * GB, 10, 0),
    ),
    "cs-preempt12-whole": Scenario(
        "the same, at once, with natural_termination_factor 1: "
        "what is left is the cap of a round (0.1) and the dead zone",
        _queues(_HALVES),
        _VECTOR12,
        site=_MONITOR
        | {
            "lab.limit-ms": 120_000,
            "scheduler.monitor.max_wait_before_kill": 0,
            "scheduler.monitor.natural_termination_factor": 1.0,
        },
        nodes=10,
        node=(10 * GB, 10, 0),
    ),
    "cs-preempt-apps": Scenario(
        "whom the monitor takes: three applications of two users hold all, the monitor goes by 100 % at once",
        _queues(_HALVES),
        (
            App("a1", 0, "root.a", 30, 200, size=_SMALL),
            App("a2", 10, "root.a", 30, 200, "carol", _SMALL, GB),
            App("a3", 20, "root.a", 38, 200, size=_SMALL, am_mb=GB),
            App("b1", 60, "root.b", 45, 60, "bob", _SMALL),
        ),
        site={
            **_MONITOR,
            "scheduler.monitor.total_preemption_per_round": 1.0,
            "scheduler.monitor.natural_termination_factor": 1.0,
        },
        nodes=10,
        node=(10 * GB, 10, 0),
    ),
    "cs-preempt3": Scenario(
        "the monitor's defaults with three levels of queues and GPUs: dev.cv comes last and is owed its share",
        _queues(_THREE),
        (
            App("web", 0, "root.prod.web", 40, 300),
            App("etl", 5, "root.prod.etl", 20, 300, "bob"),
            App("nlp", 10, "root.dev.nlp", 30, 300, "carol"),
            App("cv", 30, "root.dev.cv", 20, 100, "dave"),
        ),
        site={**_MONITOR, "lab.limit-ms": 200_000},
        nodes=8,
    ),
    "cs-locality": Scenario(
        "node-locality-delay 6 and rack-locality-additional-delay -1; containers that want busy nodes",
        _queues(_ALL, **{"node-locality-delay": 6}),
        (
            App("fill", 0, "root.q", 16, 30, hosts=("node01", "node02")),
            App("node", 5, "root.q", 6, 6, "bob", hosts=("node01",)),
            App("any", 6, "root.q", 6, 6, "carol"),
            App("two", 45, "root.q", 12, 5, "dave", hosts=("node03", "node05")),
        ),
        nodes=6,
        racks=3,
    ),
    "cs-locality-rack": Scenario(
        "the same with rack-locality-additional-delay 5",
        _queues(_ALL, **{"node-locality-delay": 6, "rack-locality-additional-delay": 5}),
        (
            App("fill", 0, "root.q", 16, 30, hosts=("node01", "node02")),
            App("node", 5, "root.q", 6, 6, "bob", hosts=("node01",)),
            App("any", 6, "root.q", 6, 6, "carol"),
        ),
        nodes=6,
        racks=3,
    ),
    "cs-reserve": Scenario(
        "a container of 8 GPUs on four nodes that are busy with small ones; "
        "others come behind it in the same and another queue",
        _queues(_HALVES),
        (
            App("small1", 0, "root.a", 20, 15),
            App("small2", 4, "root.b", 12, 22, "bob"),
            App("big", 6, "root.a", 2, 12, "carol", (32 * GB, 8, 8)),
            App("behind", 8, "root.a", 8, 8, "dave"),
            App("beside", 10, "root.b", 8, 8, "erin"),
        ),
    ),
    "cs-drain": Scenario(
        "several allocations in one heartbeat: containers with and without a wanted node, 100 assignments a heartbeat",
        _queues(_ALL, **{"per-node-heartbeat.maximum-offswitch-assignments": 4}),
        (App("any", 0, "root.q", 20, 8), App("local", 0, "root.q", 12, 8, "bob", hosts=("node02", "node03"))),
    ),
}
