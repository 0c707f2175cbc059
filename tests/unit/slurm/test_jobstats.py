"""Summaries of jobstats: what is read, and what damaged ones are refused for."""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any

import pytest

from gpuctl.slurm.jobstats import memory, summary


def packed(found: Any) -> str:
    return "JS1:" + base64.b64encode(gzip.compress(json.dumps(found).encode(), mtime=0)).decode()


def node(used: float, total: float) -> dict[str, float]:
    return {"used_memory": used * 2**30, "total_memory": total * 2**30}


def test_memory_is_summed_over_nodes_and_the_fullest_one_is_named() -> None:
    found = summary(packed({"nodes": {"a": node(1, 4), "b": node(3, 4)}, "total_time": 60}))
    assert memory(found) == (4096, 8192, 75)


def test_a_node_without_memory_leaves_the_job_without() -> None:
    assert memory({"nodes": {"a": node(1, 4), "b": {"cpus": 4}}}) == (None, None, None)
    assert memory({"nodes": {}}) == (None, None, None)


@pytest.mark.parametrize("text", ["", "JS1:None", "JS1:Short", "by hand"])
def test_nothing_is_nothing(text: str) -> None:
    assert summary(text) is None
    assert memory(None) == (None, None, None)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (packed({"nodes": {"a": node(1, 4)}}).lower().replace("js1", "JS1"), "lower case|cannot be decoded"),
        (packed({"nodes": {}})[:40], "cut off|cannot be decoded"),
        (packed({"nodes": [1]}), "without nodes"),
        (packed([1]), "without nodes"),
        ("JS1:" + base64.b64encode(gzip.compress(b"{nodes", mtime=0)).decode(), "not JSON"),
        ("JS1:" + base64.b64encode(gzip.compress(b" " * (64 << 20), mtime=0)).decode(), "more than 4 MiB"),
        ("JS1:H4sI!!", "cannot be decoded"),
    ],
)
def test_damage_is_named(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        summary(text)
