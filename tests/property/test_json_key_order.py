"""The keys of a JSON object come in any order: each format's JSON gives the same rows whatever that order is."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from gpuctl.ingest.pipeline.load import ingest
from gpuctl.store.database import Store
from tests.example_files import FIXTURES, example_files

if TYPE_CHECKING:
    from collections.abc import Callable

    Pair = tuple[str, Any]
    Order = Callable[[list[Pair]], list[Pair]]


class Pairs(NamedTuple):
    """An object as its pairs of key and value: YARN repeats keys, which a dictionary would lose."""

    pairs: list[Pair]


_DECODER = json.JSONDecoder(object_pairs_hook=Pairs)
_LEDGER = {"sources", "rejects", "gpuctl_schema"}


def documents(text: str) -> list[object]:
    """The JSON documents that follow one another in a text."""
    found: list[object] = []
    rest = text.strip()
    while rest:
        value, end = _DECODER.raw_decode(rest)
        found.append(value)
        rest = rest[end:].lstrip()
    return found


def written(value: object, order: Order, space: str) -> str:
    """A value as JSON text, with the pairs of each object in the given order."""
    if isinstance(value, Pairs):
        inner = (f"{json.dumps(k)}:{space}{written(v, order, space)}" for k, v in order(value.pairs))
        return "{" + f",{space}".join(inner) + "}"
    if isinstance(value, list):
        return "[" + f",{space}".join(written(one, order, space) for one in value) + "]"
    return json.dumps(value)


def shuffled(seed: int) -> Order:
    """A random order; of a key that occurs several times, the values keep theirs."""
    draw = Random(seed)

    def order(pairs: list[Pair]) -> list[Pair]:
        keys = [key for key, _ in pairs]
        draw.shuffle(keys)
        values = {key: iter([v for k, v in pairs if k == key]) for key in keys}
        return [(key, next(values[key])) for key in keys]

    return order


def by_key(*, reverse: bool) -> Order:
    """By the keys' names; equal keys keep their order."""
    return lambda pairs: sorted(pairs, key=lambda pair: pair[0], reverse=reverse)


def largest_first(pairs: list[Pair]) -> list[Pair]:
    """The longest value first, so that what tells a format apart comes as late as it can."""
    return sorted(pairs, key=lambda pair: len(str(pair[1])), reverse=True)


ORDERS: dict[str, tuple[Order, str]] = {
    "sorted": (by_key(reverse=False), " "),
    "largest first": (largest_first, ""),
    "reversed": (by_key(reverse=True), ""),
    "random": (shuffled(1), " "),
}


def json_files() -> dict[str, tuple[str, bytes]]:
    """Every example file that is JSON, and what commands of Slurm printed on a real cluster."""
    found = {name: (file, data) for name, (file, data) in example_files().items() if is_json(data)}
    printed = sorted((FIXTURES / "slurm/state").glob("*.json"))
    return found | {f"state/{path.name}": (path.name, path.read_bytes()) for path in printed}


def is_json(data: bytes) -> bool:
    try:
        return bool(documents(data.decode())) and data.lstrip()[:1] in b"[{"
    except ValueError:
        return False


def stored(data: str | bytes, file: str, folder: Path) -> dict[str, list[str]]:
    """All rows that a store has of a file, table by table, but for the ledger's."""
    folder.mkdir()
    (folder / file).write_bytes(data if isinstance(data, bytes) else data.encode())
    ingest([folder / file], folder / "t.duckdb", cluster="c")
    tables = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'main' ORDER BY table_name"
    with Store(folder / "t.duckdb") as store:
        names = [name for (name,) in store.execute(tables).fetchall() if name not in _LEDGER]
        rows = {name: texts(store, f'SELECT t::VARCHAR FROM "{name}" AS t') for name in names}
        rows["ledger"] = texts(store, "SELECT (format, rows_in, rows_loaded, rows_rejected)::VARCHAR FROM sources")
        rows["reasons"] = texts(store, "SELECT reason FROM rejects")
    return rows


def texts(store: Store, sql: str) -> list[str]:
    """The rows of a statement that gives one column of texts, in an order of their own."""
    return sorted(text for (text,) in store.execute(sql).fetchall())


@pytest.mark.parametrize("name", json_files())
def test_the_order_of_keys_does_not_matter(name: str, tmp_path: Path) -> None:
    file, data = json_files()[name]
    found = documents(data.decode())
    expected = stored(data, file, tmp_path / "as it is")
    for label, (order, space) in ORDERS.items():
        text = "\n".join(written(one, order, space) for one in found)
        assert stored(text, file, tmp_path / label) == expected, label


@pytest.mark.parametrize("name", ["yarn-rest-apps", "yarn-ats", "slurm-sacct-json"])
def test_records_without_an_object_around_them_may_begin_with_any_key(name: str, tmp_path: Path) -> None:
    file, data = example_files()[name]
    [document] = documents(data.decode())
    records = inner(document)
    expected = stored(written(records, ORDERS["sorted"][0], ""), file, tmp_path / "sorted")
    # a step of Slurm is a row of the ledger, as its job is
    steps = [dict(record.pairs).get("steps", []) for record in records if isinstance(record, Pairs)]
    rows = len(records) + (sum(map(len, steps)) if name == "slurm-sacct-json" else 0)
    assert expected["ledger"] == [f"({name}, {rows}, {rows}, 0)"]
    for label in ("reversed", "random"):
        order, space = ORDERS[label]
        for form, texts_of in (("list", lambda each: "[" + ",\n".join(each) + "]"), ("lines", "\n".join)):
            text = texts_of(written(one, order, space) for one in records)
            assert stored(text, file, tmp_path / f"{label} {form}") == expected, (label, form)


def inner(document: object) -> list[object]:
    """The longest list that the members of an object lead to."""
    lists = []
    waiting = [document]
    while waiting:
        value = waiting.pop()
        if isinstance(value, Pairs):
            waiting += [inside for _, inside in value.pairs]
        elif isinstance(value, list):
            lists.append(value)
    return max(lists, key=len)


PROFILES = {f"p{k}": {"type": "DelayProfile", "delay": k + 1} for k in range(3000)}
SERIES = {"metric": {"__name__": "node_network_receive_bytes_total", "job_id": "7"}}
NODES = [
    {"name": f"n{k}", "hostname": f"n{k}", "real_memory": 1, "gres": "gpu:8", "gres_used": "gpu:1"} for k in range(999)
]
LONG: dict[str, tuple[str, str, str]] = {
    "batsim-workload": (
        "w.json",
        json.dumps({"profiles": PROFILES, "jobs": [{"id": 1, "subtime": 0, "res": 1, "profile": "p7"}], "nb_res": 4}),
        "SELECT count(*)::VARCHAR FROM jobs WHERE run_sum_s = 8",
    ),
    "traffic-prometheus": (
        "p.json",
        json.dumps(
            {"data": {"result": [{"values": [[k, str(k)] for k in range(9000)], **SERIES}], "resultType": "matrix"}}
        ),
        "SELECT min(job) FROM traffic",
    ),
    "slurm-state-json": (
        "n.json",
        json.dumps({"last_update": 1_790_000_000, "meta": {"Slurm": {"version": {}}}, "nodes": NODES}),
        "SELECT min(epoch(ts))::BIGINT::VARCHAR FROM machine_samples",
    ),
}
"""Files that are longer than what formats are recognised by, with the telling keys last or first."""


@pytest.mark.parametrize("name", LONG)
def test_long_files_are_recognised_and_read_whatever_is_first(name: str, tmp_path: Path) -> None:
    file, text, sql = LONG[name]
    assert len(text) > 90_000
    (tmp_path / file).write_text(text)
    ingest([tmp_path / file], tmp_path / "t.duckdb")
    with Store(tmp_path / "t.duckdb") as store:
        assert store.value("SELECT min(format) FROM sources") == name
        expected = {"batsim-workload": "1", "traffic-prometheus": "7", "slurm-state-json": "1790000000"}[name]
        assert store.value(sql) == expected
