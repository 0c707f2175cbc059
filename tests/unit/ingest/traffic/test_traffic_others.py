"""Counters from Prometheus, and flows."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gpuctl.core.errors import InputError
from gpuctl.ingest.formats import traffic_flows, traffic_prometheus
from gpuctl.ingest.pipeline.registry import all_formats
from gpuctl.store.database import Store
from tests.traffic_loading import FIXTURES, Loaded

PROMETHEUS, FLOWS = traffic_prometheus.FORMAT, traffic_flows.FORMAT
NODE = {"__name__": "node_network_receive_bytes_total", "instance": "gpu01:9100", "job": "node", "device": "eth0"}
VALUES = [[100000000, "5"], [100000015.5, "25"]]
AS_ROWS = [(100000000, 0, None), (100000015.5, 20, 15.5)]


def answer(*series: dict[str, Any]) -> str:
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": series}})


def test_an_answer_with_a_restart_and_several_interfaces(store: Store) -> None:
    data = (FIXTURES / "prometheus.json").read_bytes()
    found = Loaded(PROMETHEUS, data, store)
    # 9 samples of counters; a series of the other direction and one without a name are a row each
    assert found.counts == (11, 9, 2)
    assert sorted(reason.partition(";")[0] for reason in found.reasons) == [
        "no name of a metric: a result of rate(), sum() and their like",
        "not a counter of received bytes",
    ]
    series = found.series()
    assert sorted(series) == ["train-a", "train-b/eth0", "train-b/net1"]
    assert [size for _, size, _ in series["train-a"]] == [0, 150000, 150000, 2000, 150000]
    assert series["train-b/net1"][1] == (1795251060.5, 1193, 60.5)
    assert [fmt.name for fmt in all_formats() if fmt.sniff("x.json", data)] == ["traffic-prometheus"]


@pytest.mark.parametrize(
    ("labels", "job"),
    [
        ({}, "gpu01:9100"),
        ({"pod": "p", "container": "c"}, "p"),
        ({"name": "docker-1", "id": "/kubepods/pod1/c1"}, "docker-1"),
        ({"id": "/kubepods/pod1/c1"}, "/kubepods/pod1/c1"),
        ({"job_id": "77", "pod": "p"}, "77"),
        ({"pod": ""}, "gpu01:9100"),
    ],
)
def test_names_of_series(store: Store, labels: dict[str, str], job: str) -> None:
    found = Loaded(PROMETHEUS, answer({"metric": NODE | labels, "values": VALUES}), store)
    assert found.series() == {job: AS_ROWS}


def test_series_of_one_name_are_distinguished_or_rejected(store: Store) -> None:
    ib = NODE | {"device": "ib0"}
    other = NODE | {"job": "node-2"}
    text = answer(*({"metric": metric, "values": VALUES} for metric in (NODE, ib, other)))
    found = Loaded(PROMETHEUS, text, store)
    assert found.series() == {"gpu01:9100/eth0": AS_ROWS, "gpu01:9100/ib0": AS_ROWS}
    assert found.reasons == {"a second series of this name; narrow the query down to one of them": 1}


@pytest.mark.parametrize(
    ("series", "reason"),
    [
        ({"metric": NODE, "value": VALUES[0]}, "no samples over time"),
        ({"metric": {"__name__": NODE["__name__"]}, "values": VALUES}, "no label that names what was counted"),
        ({"metric": NODE, "values": [[1, "2"], [1, "2"]]}, "time is not after"),
        ({"metric": NODE, "values": [[1, "2"], [2, "NaN"]]}, "value is not a number"),
        ({"metric": NODE, "values": [[1, "2"], "x"]}, "a sample is not [time, value]"),
        ({"metric": 5, "values": VALUES}, "no labels"),
    ],
)
def test_rejected_parts_of_an_answer(store: Store, series: dict[str, Any], reason: str) -> None:
    found = Loaded(PROMETHEUS, answer(series, {"metric": NODE | {"instance": "b"}, "values": VALUES}), store)
    assert found.counts[2] == 1
    assert next(iter(found.reasons)).startswith(reason)
    assert found.series()["b"] == AS_ROWS


def test_an_answer_that_was_cut_off_keeps_its_whole_series(store: Store) -> None:
    text = answer({"metric": NODE, "values": VALUES}, {"metric": NODE | {"instance": "b"}, "values": VALUES})
    found = Loaded(PROMETHEUS, text[:-40], store)
    assert (found.series(), found.counts) == ({"gpu01:9100": AS_ROWS}, (3, 2, 1))


def test_flows_of_nfdump_that_overlap(store: Store) -> None:
    found = Loaded(FLOWS, (FIXTURES / "nfdump-1.7.1.csv").read_bytes(), store)
    assert found.counts == (5, 5, 0)
    start = 1795250901.0  # 2026-11-21 08:48:21 UTC
    assert found.series() == {
        # 5 MB over 10 s, and from the middle of it 10 MB over 10 s
        "10.0.0.21": [(start + 5, 2.5e6, 5), (start + 10, 7.5e6, 5), (start + 15, 5e6, 5)],
        "10.0.0.22": [
            (start + 2.001, 1400, 0.001),
            (start + 19, 0, 16.999),
            (pytest.approx(start + 19.4), pytest.approx(8e5), 0.4),
        ],
        "10.0.0.9": [(start + 15, 90000, 15)],
    }


@pytest.mark.parametrize(
    "text",
    [
        "start,end,dst,bytes\n1000000000,1000000004,a,8\n1000000002,1000000004,a,4\n",
        "start,end,src,dst,bytes\n1000000002,1000000004,s,a,4\n1000000000,1000000004,s,a,8\n",
        "job_id,start,end,dst,bytes\na,2001-09-09 01:46:40,2001-09-09T01:46:44Z,x,8\na,1000000002.0,1000000004.0,x,4\n",
        "firstSeen,duration,proto,srcAddr,srcPort,dstAddr,dstPort,packets,bytes,flows\n"
        "2001-09-09 01:46:42.000,2.000,6,s,1,a,2,1,4,1\n2001-09-09 01:46:40.000,4.000,6,s,1,a,2,1,8,1\n",
    ],
)
def test_columns_of_flows(store: Store, text: str) -> None:
    assert Loaded(FLOWS, text, store).series() == {"a": [(1000000002, 4, 2), (1000000004, 8, 2)]}


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("3,2,a,5", "end is before start"),
        ("x,2,a,5", "start is neither seconds since 1970 nor YYYY-MM-DD HH:MM:SS"),
        ("1,2,,5", "no name of a job: 1 to 500 printable characters are expected"),
        ("1,2,a,-5", "bytes is not from 0 to 1e+24"),
        ("1,2e9,a,5", "end is neither seconds since 1970 nor YYYY-MM-DD HH:MM:SS"),
        ("1,2000000000,a,5", "a flow of more than 1e+09 s"),
    ],
)
def test_rejected_flows(store: Store, row: str, reason: str) -> None:
    found = Loaded(FLOWS, f"start,end,dst,bytes\n0,1,a,7\n{row}\n", store)
    assert (found.counts, found.reasons) == ((2, 1, 1), {reason: 1})
    assert found.series() == {"a": [(1, 7, 1)]}
    assert store.value("SELECT count(*) FROM traffic WHERE source < 0") == 0


def test_a_header_of_flows_without_a_length_is_refused(store: Store) -> None:
    with pytest.raises(InputError, match="expected start, end or duration, job_id or dst, and bytes"):
        Loaded(FLOWS, "start,dst,bytes\n1,a,5\n", store)
