"""All of a site's files together: each is recognised by its content, and no bytes whatever go missing or crash."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from gpuctl.core.errors import InputError
from gpuctl.ingest.pipeline.load import ingest
from gpuctl.store.database import Store
from tests.example_counts import examples
from tests.philly_log import load_into
from tests.slurm_site_files import (
    EXCERPTS,
    NAMES,
    PARTITIONS,
    QOS,
    SHOWN_TOPOLOGY,
    SQUEUE,
    Loose,
    real,
    site_format,
    site_formats,
)

if TYPE_CHECKING:
    from pathlib import Path

FORMATS = site_formats()
MORE = {"topology": SHOWN_TOPOLOGY, "limits": QOS, "squeue_samples": SQUEUE.replace("|", "\x1f")}
ODD = [
    b"\n",
    b"\r\n",
    b"\0",
    b"|",
    b"=",
    b"[1-999999999999]",
    b"(IDX:0-9999)",
    b"\xff\xfe",
    b'"',
    b"\\",
    b"9" * 30,
    b",",
    b" ",
]


def claims(data: bytes) -> list[str]:
    head = data[: 64 << 10]
    return [f.name for f in FORMATS if f.sniff("file.txt", head) is not None]


@pytest.mark.parametrize("name", NAMES)
def test_a_file_is_claimed_by_its_own_format_alone(name: str) -> None:
    own = [site_format(name).name]
    assert claims(EXCERPTS[name].encode()) == own
    assert claims(b"\xef\xbb\xbf" + EXCERPTS[name].encode()) == own
    assert claims(EXCERPTS[name].replace("\n", "\r\n").encode()) == own
    if name in MORE:
        assert claims(MORE[name].encode()) == own


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"JobID|User|State\n1|a|COMPLETED\n",
        b"JobID|JobName|Submit|Start|End|State|NodeList\n1|a|Unknown|Unknown|Unknown|PENDING|None assigned\n",
        b"JobId=1 UserId=a(1) GroupId=a(1) Name=x JobState=COMPLETED Partition=p StartTime=2026-11-20T21:04:38\n",
        b"Account|User|RawShares\nroot||1\n",
        b"DbdHost=localhost\nStorageLoc=x\n",
        b"CgroupPlugin=cgroup/v1\nConstrainCores=yes\n",
        b"[2026-11-20T21:04:36.494] slurmd version 22.05.8 started\n[2026-11-20T21:04:36.5] launch task StepId=1.0\n",
        b"[2026-11-20 21:04:36] INFO something\n",
        b"import yaml\nName = 'x'\n",
        b"name: x\nnodes: 3\n",
    ],
)
def test_strangers_are_claimed_by_nobody(data: bytes) -> None:
    assert claims(data) == []


@pytest.mark.parametrize("folder", ["22.05.8", "ci-smoke-22.05.8", "ci-smoke-24.11.5"])
def test_real_files_under_any_name(folder: str) -> None:
    own = {
        **{
            "slurm.conf": "conf",
            "gres.conf": "gres_conf",
            "topology.conf": "topology",
            "scontrol_topology.txt": "topology",
        },
        **{"scontrol_node.txt": "nodes", "scontrol_node_oneline.txt": "nodes", "nodes.txt": "nodes"},
        **{"topology.txt": "topology", "scontrol_partition.txt": "partitions", "scontrol_config.txt": "config"},
        **{"sacctmgr_event.txt": "events", "events.txt": "events", "sinfo_samples.txt": "sinfo_samples"},
        **{"sacctmgr_assoc.txt": "limits", "sacctmgr_qos.txt": "limits", "sacctmgr_dump.cfg": "sacctmgr_dump"},
        **{"squeue_samples.txt.gz": "squeue_samples", "slurmctld.log": "ctld"},
        **{"scontrol_job_detail.txt.gz": "job_detail", "scontrol_job_oneline.txt.gz": "job_detail"},
    }
    for path in sorted(real(folder).iterdir()):
        data = path.read_bytes()
        wanted = [site_format(own[path.name]).name] if path.name in own else []
        assert claims(gzip.decompress(data) if path.suffix == ".gz" else data) == wanted, path.name


@st.composite
def spoiled(draw: st.DrawFn, data: bytes) -> bytes:
    """`data` with a few bytes changed, cut out or put in, lines in another order, and perhaps cut off."""
    if draw(st.booleans()):
        data = b"\n".join(draw(st.permutations(data.split(b"\n"))))
    for _ in range(draw(st.integers(0, 5))):
        at = draw(st.integers(0, len(data)))
        length = draw(st.integers(0, 40))
        data = data[:at] + draw(st.one_of(st.binary(max_size=30), st.sampled_from(ODD))) + data[at + length :]
    return data[: draw(st.integers(0, len(data)))] if draw(st.booleans()) else data


def load_whatever(name: str, data: bytes) -> None:
    fmt = site_format(name)
    for other in FORMATS:
        other.sniff("x", data)
    sink = Loose()
    try:
        load_into(sink, fmt, data)
    except InputError:
        assert sink.rows_in == 0


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=examples(120), suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_spoiled_files_lose_no_row(name: str, data: st.DataObject) -> None:
    text = data.draw(st.sampled_from([EXCERPTS[name], MORE.get(name, EXCERPTS[name])])).encode()
    load_whatever(name, data.draw(spoiled(text)))


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=30)
@given(data=st.binary(max_size=300))
@example(data=b"\n" * 50)
@example(data=b"=" * 200)
@example(data=b"NodeName=" + b"n[1-9]" * 9 + b"\n")
@example(data=b"SwitchName=s Nodes=" + b"[0-65535]" * 20 + b"\n")
def test_any_bytes_at_all(name: str, data: bytes) -> None:
    load_whatever(name, data)


def test_a_folder_of_all_of_them(tmp_path: Path) -> None:
    folder = tmp_path / "site"
    folder.mkdir()
    for number, (name, text) in enumerate([*EXCERPTS.items(), ("partitions", PARTITIONS), *MORE.items()]):
        (folder / f"{number}.{name}").write_text(text)
    db = tmp_path / "site.duckdb"
    report = ingest([folder], db, formats=FORMATS)
    assert [(s.path, s.message) for s in report.sources if s.status not in {"loaded", "unchanged"}] == []
    with Store(db) as store:
        sums = store.frame(
            "SELECT sum(rows_in) AS i, sum(rows_loaded + rows_already_stored + rows_rejected) AS o FROM sources"
        ).row(0)
        assert sums[0] == sums[1] > 0
        assert store.value("SELECT count(*) - count(DISTINCT machine) FROM machines") == 0
        assert store.value("SELECT count(*) - count(DISTINCT queue) FROM queues") == 0
    again = ingest([folder], db, formats=FORMATS)
    assert {s.status for s in again.sources} == {"unchanged"}


def test_a_log_that_has_grown_replaces_its_earlier_rows(tmp_path: Path) -> None:
    log = tmp_path / "slurmctld.log"
    text = EXCERPTS["ctld"]
    db = tmp_path / "site.duckdb"
    counts = []
    for lines in (text[: text.index("\n", 900) + 1], text):
        log.write_text(lines)
        ingest([log], db, formats=FORMATS)
        with Store(db) as store:
            counts.append(store.value("SELECT count(*) FROM job_events"))
    assert counts[0] < counts[1] == 10
