"""Holds what `gpuctl ingest` made of a lab's logs and dumps against the manifest of what ran.

Every function returns the differences in words, none where all is as it was. The slack is for clocks read one after
another on one busy machine; the zone, the day and the order must be right.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpuctl.store.database import Store

Row = dict[str, Any]
SLACK_MS = 1500
"""Between a daemon's stamp and the moment at which client or master noticed, where no interval is known."""
_STATES = {"SUCCEEDED": "completed", "FAILED": "failed", "KILLED": "killed", "UNDEFINED": "running"}


def jobs(store: Store, manifest: Row, *, paths: bool, names: bool, exact: bool) -> list[str]:
    """Compare ids, users, queues, states, attempts, submissions and ends.

    Args:
        store: with one cluster.
        manifest: as ``record`` wrote it.
        paths: whether queues are wanted with their whole path, else by their last part.
        names: whether the source tells of names.
        exact: whether submission and end are the ResourceManager's own milliseconds.
    """
    found = _rows(store, 'SELECT job, "user", queue, name, state, attempts, submit_ts, end_ts FROM jobs', "job")
    wanted = {app["app"]: app for app in manifest["applications"]}
    full = {queue["path"].split(".")[-1]: queue["path"] for queue in manifest["queues"]}
    problems = _sets("applications", set(found), set(wanted))
    for job in sorted(set(found) & set(wanted)):
        row, app = found[job], wanted[job]
        leaf = app["queue"].split(".")[-1]
        queue = full.get(leaf, leaf) if paths else leaf
        got_queue = row["queue"] if paths else str(row["queue"]).split(".")[-1]
        pairs = [
            ("user", row["user"], app["user"]),
            ("queue", got_queue, queue),
            ("state", row["state"], _STATES[app["final_status"]]),
        ]
        if names:
            pairs.append(("name", row["name"], app["name"]))
        problems += _pairs(app["key"], pairs)
        problems += _submission(row, app, exact=exact) + _end(row, app, exact=exact)
    return problems


def attempts(store: Store, manifest: Row, *, gpus: bool = True) -> list[str]:
    """Compare the number of attempts, who failed, when the gang stood, and its GPUs and servers.

    Args:
        store: with one cluster.
        manifest: as ``record`` wrote it.
        gpus: whether the source tells of GPUs; else they have to be unknown.
    """
    rows = _listed(store, "SELECT * FROM attempts ORDER BY job, attempt", "job")
    problems = []
    for app in manifest["applications"]:
        got = rows.get(app["app"], [])
        if len(got) != len(app["attempts"]):
            problems.append(f"{app['key']}: {len(got)} attempts instead of {len(app['attempts'])}")
            continue
        for row, attempt in zip(got, app["attempts"], strict=True):
            key = f"{app['key']} attempt {row['attempt']}"
            if attempt["state"] == "FAILED" and row["state"] not in {"failed", "node_fail"}:
                problems.append(f"{key}: state {row['state']} of one that failed")
            problems += _gang(key, row, attempt, gpus=gpus)
    return problems


def containers(store: Store, manifest: Row, *, hosts: bool, exits: bool, gpus: bool = True) -> list[str]:
    """Compare containers: that they are there, their GPUs, hosts, times and exit codes.

    Args:
        store: with one cluster.
        manifest: as ``record`` wrote it.
        hosts: whether every host must be known, else only right where it is.
        exits: whether every exit code that the masters saw must be known.
        gpus: whether the source tells of GPUs; else they have to be unknown.
    """
    found = _rows(store, "SELECT * FROM containers", "container")
    masters = {t["master"]["container"] for a in manifest["applications"] for t in a["attempts"]} - {None}
    wanted = {c["container"]: (t, c) for a in manifest["applications"] for t in a["attempts"] for c in t["containers"]}
    handed_back = {c["container"] for a in manifest["applications"] for t in a["attempts"] for c in t["released"]}
    problems = [f"container {c} is missing" for c in sorted((set(wanted) | masters | handed_back) - set(found))]
    # the ResourceManager may allocate what no master asked for any more; such never run
    odd = sorted(name for name in set(found) - set(wanted) - masters if found[name]["running_ts"] is not None)
    problems += [f"container {name} ran, and no master held it" for name in odd]
    for name in sorted((masters | set(wanted)) & set(found)):
        problems += _pairs(f"container {name}", [("is_master", found[name]["is_master"], name in masters)])
    for name in sorted(set(wanted) & set(found)):
        problems += _container(found[name], *wanted[name], hosts=hosts, exits=exits, gpus=gpus)
    return problems


def machines(store: Store, manifest: Row, *, racks: bool) -> list[str]:
    """Compare the nodes: GPUs, cores, memory, and racks where the source has them."""
    found = _rows(store, "SELECT machine, gpus, cpus, mem_mb, rack FROM machines", "machine")
    problems = _sets("machines", set(found), {node["name"] for node in manifest["nodes"]})
    for node in manifest["nodes"]:
        row = found.get(node["name"], {})
        pairs = [(key, row.get(key), node[want]) for key, want in (("gpus", "gpus"), ("cpus", "vcores"))]
        pairs.append(("mem_mb", row.get("mem_mb"), node["mem_mb"]))
        if racks:
            pairs.append(("rack", row.get("rack"), node["rack"]))
        problems += _pairs(node["name"], pairs)
    return problems


def quotas(store: Store, manifest: Row) -> list[str]:
    """Compare the queues of the scheduler dump and the GPUs that each is guaranteed."""
    found = _rows(store, "SELECT queue, parent, quota_gpus, quota_source FROM queues", "queue")
    gpus = {"root": float(sum(node["gpus"] for node in manifest["nodes"]))}
    problems = []
    for queue in manifest["queues"]:
        parent = queue["path"].rpartition(".")[0]
        gpus[queue["path"]] = gpus[parent] * queue["capacity"] / 100
        row = found.get(queue["path"])
        if row is None:
            problems.append(f"queue {queue['path']} is missing: {sorted(found)}")
            continue
        got = row["quota_gpus"]
        pairs = [("parent", row["parent"], parent), ("source", row["quota_source"], "configured")]
        # guaranteed GPUs of nodes that were up when the dump was taken
        if got is None or not 0 < got <= gpus[queue["path"]] * 1.001:
            pairs.append(("quota_gpus", got, gpus[queue["path"]]))
        problems += _pairs(queue["path"], pairs)
    return problems


def lost_nodes(store: Store, manifest: Row) -> list[str]:
    """Compare the times at which machines were not to be had with those at which the lab ended NodeManagers for good.

    The lab's ResourceManager gives a NodeManager up after 5 s, and looks every few.
    """
    found = _rows(store, "SELECT machine, from_ts, to_ts, state FROM machine_events", "machine")
    ended = {event["node"]: event["ms"] for event in manifest["lab"] if event["event"] == "lose_node"}
    problems = _sets("lost machines", set(found), set(ended))
    for name in sorted(set(found) & set(ended)):
        row = found[name]
        problems += _pairs(name, [("state", row["state"], "LOST"), ("back", row["to_ts"], None)])
        problems += _within(f"{name}: lost", row["from_ts"], ended[name], ended[name] + 10_000)
    return problems


def gpus(store: Store, manifest: Row) -> list[str]:
    """Compare the GPUs of jobs with those of their largest gang: right, not known, or marked as an estimate or a part.

    A part (what a dump saw a job hold) may be as great as the whole and no greater.
    """
    found = _rows(store, "SELECT job, gpus, quirks FROM jobs", "job")
    problems = []
    for app in manifest["applications"]:
        row = found[app["app"]]
        requested = max(
            (t["gpus_asked_each"] * t["containers_asked"] for t in app["attempts"] if t["asked_ms"]), default=0
        )
        held = [sum(c["gpus"] for c in gang) for gang in map(gangs, app["attempts"]) if gang]
        # of a gang that never stood, no more can be known than what it had got
        fits = row["gpus"] == max(held) if held else row["gpus"] is None or row["gpus"] <= max(requested, 1)
        partial = "gpus_partial" in row["quirks"] and row["gpus"] <= max(held, default=requested)
        if row["gpus"] is not None and not fits and not partial and "gpus_estimated" not in row["quirks"]:
            problems.append(f"{app['key']}: {row['gpus']} GPUs instead of {max(held, default=requested)}")
        if row["gpus"] == 0 and requested:
            problems.append(f"{app['key']}: no GPUs instead of {requested}")
    return problems


def occupancy(store: Store, nodes: list[Row], from_ms: int, slack_ms: int = 1000) -> list[str]:
    """Compare GPUs in use a node, summed over containers, with what the ResourceManager said at an instant.

    Args:
        store: with one cluster.
        nodes: of ``/ws/v1/cluster/nodes``.
        from_ms: when that was asked for; the answer came within `slack_ms`.
        slack_ms: how long the instant may have lasted.
    """
    rows = store.frame("SELECT machine, gpus, allocated_ts, end_ts FROM containers WHERE gpus > 0").rows(named=True)
    problems = []
    for node in nodes:
        infos = node["usedResource"]["resourceInformations"]["resourceInformation"]
        in_use = next(i["value"] for i in infos if i["name"] == "yarn.io/gpu")
        name = node["nodeHostName"]
        held = {
            sum(row["gpus"] for row in rows if row["machine"] == name and _open(row, at))
            for at in range(from_ms, from_ms + slack_ms, 50)
        }
        if in_use not in held:
            problems.append(f"{name}: {in_use} GPUs in use, by its containers {sorted(held)}")
    return problems


def _open(row: Row, at_ms: int) -> bool:
    begun, end = row["allocated_ts"], row["end_ts"]
    return begun is not None and _ms(begun) <= at_ms and (end is None or at_ms < _ms(end))


def gangs(attempt: Row) -> list[Row]:
    """The containers that an attempt's master held when it first started them; none where it never had all."""
    begun = [c["started_ms"] for c in attempt["containers"] if "started_ms" in c]
    if not begun:
        return []
    first = min(begun)
    return [c for c in attempt["containers"] if c["allocated_ms"] <= first and c.get("ended_ms", first) >= first]


def _gang(key: str, row: Row, attempt: Row, *, gpus: bool) -> list[str]:
    gang = gangs(attempt)
    # with one lost before the gang stood, its members cannot be told from the allocations
    if not gang or any(c.get("ended_ms", _first(gang)) < _first(gang) for c in attempt["containers"]):
        return []
    problems = _pairs(key, [("gpus", row["gpus"], float(sum(c["gpus"] for c in gang)) if gpus else None)])
    if row["servers"] is not None and row["servers"] > len({c["host"] for c in gang}):
        problems.append(f"{key}: {row['servers']} servers instead of {len({c['host'] for c in gang})}")
    latest = max(c["allocated_ms"] for c in gang)
    # a master hears of its containers when it next asks, a second or two later at most
    problems += _within(f"{key}: gang stood", row["start_ts"], max(attempt["asked_ms"], latest - 2000), latest)
    return problems + _within(f"{key}: first container", row["first_container_ts"], attempt["asked_ms"], latest)


def _first(gang: list[Row]) -> int:
    return int(min(c["started_ms"] for c in gang))


def _container(row: Row, attempt: Row, seen: Row, *, hosts: bool, exits: bool, gpus: bool) -> list[str]:
    key = f"container {seen['container']}"
    problems = _pairs(key, [(k, row[k], seen[w]) for k, w in (("cpus", "vcores"), ("mem_mb", "mem_mb"))])
    problems += _pairs(key, [("gpus", row["gpus"], seen["gpus"] if gpus else None)])
    if hosts or row["machine"] is not None:
        problems += _pairs(key, [("machine", row["machine"], seen["host"])])
    problems += _within(f"{key}: allocated", row["allocated_ts"], attempt["asked_ms"], seen["allocated_ms"])
    if "ended_ms" in seen:
        begun: int = seen["started_ms"] if "started_ms" in seen else seen["allocated_ms"]
        problems += _within(f"{key}: ended", row["end_ts"], begun, seen["ended_ms"])
        if exits:
            problems += _pairs(key, [("exit code", row["exit_code"], seen["exit"])])
    return problems


def _submission(row: Row, app: Row, *, exact: bool) -> list[str]:
    if exact:
        got = row["submit_ts"]
        return _pairs(app["key"], [("submission", None if got is None else _ms(got), app["start_ms"])])
    return _within(f"{app['key']}: submitted", row["submit_ts"], app["submit_from_ms"], app["submit_to_ms"])


def _end(row: Row, app: Row, *, exact: bool) -> list[str]:
    if app["end_seen_ms"] is None:
        return _pairs(app["key"], [("end", row["end_ts"], None)])
    if exact:
        got = row["end_ts"]
        return _pairs(app["key"], [("end", None if got is None else _ms(got), app["finish_ms"])])
    return _within(f"{app['key']}: ended", row["end_ts"], app["start_ms"], app["end_seen_ms"])


def _within(what: str, got: datetime | None, low: int, high: int) -> list[str]:
    if got is None:
        return [f"{what}: at no time"]
    if low - SLACK_MS <= _ms(got) <= high + SLACK_MS:
        return []
    span = " and ".join(datetime.fromtimestamp(ms / 1000, UTC).isoformat() for ms in (low, high))
    return [f"{what}: at {got.isoformat()}, not between {span}"]


def _pairs(key: str, pairs: list[tuple[str, object, object]]) -> list[str]:
    return [f"{key}: {what} {got!r} instead of {want!r}" for what, got, want in pairs if got != want]


def _sets(what: str, got: set[str], want: set[str]) -> list[str]:
    absent, extra = sorted(want - got), sorted(got - want)
    return [f"{what}: {n} missing" for n in absent] + [f"{what}: {n} was none" for n in extra]


def _ms(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


def _rows(store: Store, sql: str, key: str) -> dict[str, Row]:
    rows = store.frame(sql).rows(named=True)
    keyed = {row[key]: row for row in rows}
    if len(keyed) != len(rows):
        raise AssertionError(f"{len(rows) - len(keyed)} rows of the same {key}: {sql}")
    return keyed


def _listed(store: Store, sql: str, key: str) -> dict[str, list[Row]]:
    found: defaultdict[str, list[Row]] = defaultdict(list)
    for row in store.frame(sql).rows(named=True):
        found[row[key]].append(row)
    return found
