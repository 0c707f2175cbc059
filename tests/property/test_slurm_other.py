"""Whatever the bytes: rows in = rows loaded + rows rejected, no crash, and what is sound is kept."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpuctl.core.errors import InputError
from gpuctl.ingest.formats import slurm_dbd, slurm_dbd_names, slurm_jobcomp, slurm_json, slurm_tacc
from gpuctl.ingest.read.json_walk import jobs
from gpuctl.ingest.slurm import dbd_sql
from gpuctl.ingest.slurm.jobcomp_fields import fields as jobcomp_fields
from gpuctl.ingest.slurm.json_fields import clock, number
from gpuctl.store.database import Store
from tests.example_counts import examples
from tests.slurm_loading import FIXTURES, OneSource
from tests.slurm_loading import load as load_one

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpuctl.ingest.core.format import Format

TACC = b"1\nJobID JobName UID Start Submit End Priority TimelimitR ExitCode NNodes\n" + b"".join(
    b"%d\tname %d\t00001\t2022-11-01T15:34:14\t2022-10-05T11:52:48\t2022-11-03T15:34:15\t1\t28\t0:0\t2\n" % (n, n)
    for n in range(5)
)
TABS = b"id_job\tstate\ttime_submit\ttres_alloc\tnodelist\n" + b"".join(
    b"%d\t3\t1795208678\t1=2,1001=4\tn[1-%d]\n" % (n, n) for n in range(1, 5)
)
NAMES = b"id\ttype\tname\n1001\tgres\tgpu\n1002\tgres\tgpu:a100\n"


def _head(name: str, size: int) -> bytes:
    return (FIXTURES / name).read_bytes()[:size]


def _few_jobs() -> bytes:
    whole = json.loads((FIXTURES / "sacct.json").read_bytes())
    return json.dumps({**whole, "jobs": [{**job, "steps": []} for job in whole["jobs"][:4]]}).encode()


CASES: dict[str, tuple[Format, bytes]] = {
    "json": (slurm_json.FORMAT, _few_jobs()),
    "dump": (slurm_dbd.FORMAT, _head("slurmdbd.sql", 9_000)),
    "tabs": (slurm_dbd.FORMAT, TABS),
    "commas": (slurm_dbd.FORMAT, TABS.replace(b"1=2,1001=4", b'"1=2,1001=4"').replace(b"\t", b",")),
    "names": (slurm_dbd_names.FORMAT, NAMES),
    "jobcomp": (slurm_jobcomp.FORMAT, _head("jobcomp.log", 3_000)),
    "tacc": (slurm_tacc.FORMAT, TACC),
}
PIECES = st.sampled_from(
    [b"", b"\n", b'"', b"'", b"\\", b"(", b")", b",", b"{", b"}", b"[", b"]", b"\x00", b"\xff", b"null", b"-1",
     b"1e999", b"n[1-999999999999]", b"18446744073709551614", b"99999999999999999999", b"Unknown", b"\t",
     b"1=2,3=", b"JobId=", b"2038-01-19T03:14:08"]
)  # fmt: skip


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with Store(tmp_path_factory.mktemp("property") / "gpuctl.duckdb", write=True) as opened:
        yield opened


def load(fmt: Format, data: bytes, store: Store) -> tuple[OneSource | None, list[str]]:
    """What became of the rows, and the jobs; nothing stays in the store."""
    store.execute("BEGIN")
    try:
        sink = load_one(fmt, data, store)
        assert sink.rows_in == sink.rows_loaded + sink.rows_rejected
        assert min(sink.rows_in, sink.rows_loaded, sink.rows_rejected) >= 0
        return sink, [row[0] for row in store.execute("SELECT job FROM jobs").fetchall()]
    except InputError:
        return None, []
    finally:
        store.execute("ROLLBACK")


SAME_STORE = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@settings(SAME_STORE, max_examples=examples(100))
@given(st.sampled_from(sorted(CASES)), st.data())
def test_mutated_files_are_accounted_for(store: Store, case: str, data: st.DataObject) -> None:
    fmt, text = CASES[case]
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text)))
        cut = data.draw(st.integers(0, 12))
        text = text[:at] + data.draw(PIECES | st.binary(max_size=6)) + text[at + cut :]
    _, found = load(fmt, text, store)
    assert len(set(found)) == len(found)


@settings(SAME_STORE, max_examples=examples(40))
@given(st.sampled_from(sorted(CASES)), st.data())
def test_truncated_files_keep_what_is_sound(store: Store, case: str, data: st.DataObject) -> None:
    fmt, text = CASES[case]
    _, whole = load(fmt, text, store)
    sink, short = load(fmt, text[: data.draw(st.integers(0, len(text)))], store)
    assert set(short) <= set(whole)
    assert sink is None or sink.rows_rejected <= 1


@settings(max_examples=examples(60))
@given(st.sampled_from(sorted(CASES)), st.binary(max_size=300))
def test_sniffing_never_raises(case: str, data: bytes) -> None:
    fmt, text = CASES[case]
    for head in (data, text[:200] + data, data + text[:200]):
        fmt.sniff("x", head)


@settings(max_examples=examples(100))
@given(
    st.lists(
        st.tuples(st.integers(0, 2**64), st.text(st.characters(codec="utf-8")), st.none() | st.text(max_size=5)),
        max_size=4,
    )
)
def test_every_text_survives_a_dump(rows: list[tuple[int, str, str | None]]) -> None:
    def quoted(text: str | None) -> str:
        if text is None:
            return "NULL"
        for plain, escaped in (("\\", "\\\\"), ("\0", "\\0"), ("'", "\\'"), ("\n", "\\n"), ("\x1a", "\\Z")):
            text = text.replace(plain, escaped)
        return f"'{text}'"

    values = ",".join(f"({a},{quoted(b)},{quoted(c)})" for a, b, c in rows)
    dump = "CREATE TABLE `t_job_table` (\n `a` int,\n `b` text,\n `c` text\n);\n"
    dump += f"INSERT INTO `t_job_table` VALUES {values};\n" if rows else ""
    found = dbd_sql.rows(io.BytesIO(dump.encode()), {"_job_table": frozenset("abc")})
    assert [(r.fault, r.cells) for r in found] == [(None, {"a": str(a), "b": b, "c": c}) for a, b, c in rows]


@given(st.text(st.characters(exclude_characters="\r", codec="utf-8"), max_size=60))
def test_any_job_name_survives_a_completion_record(name: str) -> None:
    text = (FIXTURES / "jobcomp.log").read_text("utf-8").split("\n", 1)[0]
    before, _, after = text.partition(" Name=")
    state = after[after.index(" JobState=") :]
    assert jobcomp_fields(f"{before} Name={name}{state}")["JobName"] == name


@given(
    st.lists(
        st.dictionaries(st.text(max_size=8), st.integers() | st.text(max_size=8) | st.none(), max_size=4), max_size=5
    )
)
def test_any_object_around_the_array_is_passed_over(members: list[dict[str, object]]) -> None:
    job = {"account": "a", "comment": {}, "job_id": 1}
    text = json.dumps({"meta": members, "errors": {"jobs": members}, "jobs": [job, job], "warnings": []})
    assert [(e.fault, e.value) for e in jobs(io.BytesIO(text.encode()))] == [(None, job)] * 2


@given(st.integers(0, 10**9))
def test_durations_are_written_as_slurm_does(seconds: int) -> None:
    days, _, rest = clock(seconds).rpartition("-")
    hours, minutes, secs = (int(part) for part in rest.split(":"))
    assert int(days or 0) * 86_400 + hours * 3600 + minutes * 60 + secs == seconds
    assert hours < 24
    assert minutes < 60 > secs


@given(st.integers(-(2**70), 2**70))
def test_a_wrapped_number_reads_as_the_bare_one(value: int) -> None:
    assert number(value) == number({"set": True, "infinite": False, "number": value})
