"""Associations and QOS as JSON: the same limits as sacctmgr's texts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from gpuctl.ingest.pipeline.load import ingest
from gpuctl.store.database import Store

if TYPE_CHECKING:
    from pathlib import Path

LIMITS = (
    'SELECT scope, account, parent, "user", partition, qos, limit_kind, gpu_type, gpus FROM gpu_limits '
    "ORDER BY ALL NULLS FIRST"
)
SETTINGS = "SELECT name, value FROM settings ORDER BY name"
TEXT = {
    "assoc.txt": (
        "Account|ParentName|User|Partition|Share|GrpTRES|MaxTRES|MaxTRESPerNode\n"
        "root||||1|gres/gpu=64||\nvision|root|||2|gres/gpu=16,cpu=99|gres/gpu:a100=8|\nvision||eve|gpu|1|||gres/gpu=4\n"
    ),
    "qos.txt": (
        "Name|Priority|GrpTRES|MaxTRES|MaxTRESPU|MaxTRESPA\nhigh|9|gres/gpu=32|gres/gpu=8|gres/gpu=-1|gres/gpu=12\n"
    ),
}


def tres(count: object, kind: str = "gpu") -> list[dict[str, Any]]:
    """A list of trackable resources as Slurm writes it, with one that is no GPU."""
    cpus = {"type": "cpu", "name": "", "id": 1, "count": 99}
    return [cpus, {"type": "gres", "name": kind, "id": 1001, "count": count}]


def assoc(account: str, parent: str = "", user: str = "", partition: str = "", **limits: Any) -> dict[str, Any]:
    """An association; `limits` are those below ``max``/``tres``."""
    own = {"accounting": [], "account": account, "cluster": "c", "parent_account": parent, "user": user}
    most = {"jobs": {"per": {}}, "tres": limits}
    return {**own, "partition": partition, "shares_raw": 1, "max": most, "qos": ["high"]}


ASSOC = [
    assoc("root", total=tres({"set": True, "infinite": False, "number": 64})),
    assoc("vision", "root", total=tres(16), per={"job": tres(8, "gpu:a100"), "node": []}),
    assoc("vision", user="eve", partition="gpu", per={"job": [], "node": tres(4)}),
]
QOS = [{
    "description": "d", "name": "high", "priority": {"set": True, "number": 9}, "usage_factor": 1.0,
    "limits": {"max": {"tres": {
        "total": tres(32), "minutes": {"per": {"job": tres(7)}},
        "per": {"job": tres(8), "user": tres({"set": False, "infinite": True}), "account": tres(12)},
    }}},
}]  # fmt: skip


def test_the_json_gives_the_limits_of_the_text(tmp_path: Path) -> None:
    answers = []
    json_files = {
        "assoc.json": json.dumps({"meta": {"Slurm": {}}, "associations": ASSOC, "errors": []}),
        "qos.json": json.dumps({"qos": QOS}, indent=1),
    }
    for name, files in (("text", TEXT), ("json", json_files)):
        folder = tmp_path / name
        folder.mkdir()
        for file, text in files.items():
            (folder / file).write_text(text)
        report = ingest([folder], tmp_path / f"{name}.duckdb", cluster="c")
        assert [s.rows_rejected for s in report.sources] == [0, 0]
        with Store(tmp_path / f"{name}.duckdb") as store:
            answers.append([store.execute(sql).fetchall() for sql in (LIMITS, SETTINGS)])
    assert len(answers[0][0]) == 7
    assert answers[1] == answers[0]


def test_what_is_no_association_is_rejected_alone(tmp_path: Path) -> None:
    odd = [{"user": "eve", "parent_account": "", "shares_raw": 1}, assoc("vision", total=tres("many")), 7]
    (tmp_path / "assoc.json").write_text(json.dumps({"associations": [*odd, *ASSOC]}))
    report = ingest([tmp_path / "assoc.json"], tmp_path / "s.duckdb", cluster="c")
    assert [(s.rows_in, s.rows_loaded, s.rows_rejected) for s in report.sources] == [(6, 3, 3)]
