from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuctl.core.errors import InputError
from gpuctl.replay.inputs.check import circular
from gpuctl.replay.inputs.job_csv import read_jobs
from gpuctl.replay.models.records import Workload

HEAD = "job_id,submit_time,duration,num_gpus"
ORACLES = Path("..") / "shared" / "oracles"


def read(folder: Path, text: str | bytes) -> Workload:
    path = folder / "jobs.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_jobs(path)


def refused(folder: Path, text: str | bytes) -> str:
    with pytest.raises(InputError) as caught:
        read(folder, text)
    return str(caught.value)


def test_the_smallest_file(tmp_path: Path) -> None:
    jobs = read(tmp_path, f"{HEAD}\na,0,10,1\nb,2.25,0.5,8\n")
    assert jobs.name == "jobs.csv"
    assert jobs.ids == ("a", "b")
    assert jobs.submit.tolist() == jobs.eligible.tolist() == [0, 2.25]
    assert jobs.segment_s.tolist() == [10, 0.5]
    assert jobs.segment_start.tolist() == [0, 1, 2]
    assert jobs.gpus.tolist() == [1, 8]
    assert (jobs.queues, jobs.queue.tolist()) == (("(none)",), [0, 0])
    assert (jobs.users, jobs.user.tolist()) == ((), [-1, -1])
    assert jobs.app.tolist() == [0, 1]
    assert np.isnan(jobs.time_limit).all()
    assert np.isnan(jobs.recorded_start).all()
    assert (jobs.origin, jobs.notes, jobs.state, len(jobs.depends)) == (None, (), ("", ""), 0)


def test_the_order_of_rows_breaks_ties(tmp_path: Path) -> None:
    jobs = read(tmp_path, f"{HEAD}\nz,5,1,1\nb,-1.5,2,1\ny,5,3,1\na,5,4,1\n")
    assert jobs.ids == ("b", "z", "y", "a")
    assert jobs.submit.tolist() == [-1.5, 5, 5, 5]
    assert jobs.segment_s.tolist() == [2, 1, 3, 4]


def test_optional_columns_and_empty_cells(tmp_path: Path) -> None:
    head = "num_gpus,app,user,vc,gpu_type,depends_on,eligible_time,requested_time,duration,submit_time,job_id"
    rows = "\n1,p,u2,q2,v100,b ; c;b,30,99.5,5,10,a\n2,,,,,,,,5,2,b\n4,p,u1,q1,a100,,,7,5,3,c\n8,o,u2,q2,,a,,,1,10,d\n"
    jobs = read(tmp_path, head + rows)
    assert jobs.ids == ("b", "c", "a", "d")
    assert [jobs.queues[q] for q in jobs.queue] == ["(none)", "q1", "q2", "q2"]
    assert [jobs.users[u] if u >= 0 else None for u in jobs.user] == [None, "u1", "u2", "u2"]
    assert [jobs.gpu_types[t] if t >= 0 else None for t in jobs.gpu_type] == [None, "a100", "v100", None]
    assert jobs.app.tolist() == [2, 1, 1, 0]
    assert jobs.eligible.tolist() == [2, 3, 30, 10]
    assert [None if np.isnan(x) else x for x in jobs.time_limit] == [None, 7, 99.5, None]
    assert sorted(map(tuple, jobs.depends.tolist())) == [(2, 0), (2, 1), (3, 2)]


def test_settings_that_slurm_uses(tmp_path: Path) -> None:
    jobs = read(
        tmp_path, f"{HEAD},account,qos,nodes,nice\na,0,1,1,vision,,2,-10\nb,1,1,1,,high,,\nc,2,1,1,nlp,high,1,3\n"
    )
    assert jobs.account is not None
    assert jobs.qos is not None
    assert jobs.min_nodes is not None
    assert jobs.nice is not None
    assert (jobs.accounts, jobs.account.tolist()) == (("nlp", "vision"), [1, -1, 0])
    assert (jobs.qos_names, jobs.qos.tolist()) == (("high",), [-1, 0, 0])
    assert (jobs.min_nodes.tolist(), jobs.nice.tolist()) == ([2, 0, 1], [-10, 0, 3])
    assert jobs.notes == ()
    plain = read(tmp_path, f"{HEAD}\na,0,1,1\n")
    assert (plain.account, plain.qos, plain.min_nodes, plain.nice) == (None, None, None, None)


def test_columns_that_are_not_known_are_noted(tmp_path: Path) -> None:
    jobs = read(tmp_path, f"{HEAD},model,gpu_time,model\na,0,1,1,x,1,y\n")
    assert jobs.notes == ("jobs.csv: columns that are not read: model, gpu_time, model",)


@pytest.mark.parametrize(
    "text",
    [
        f"\ufeff{HEAD}\r\na,0,1e1,1.0\r\n\r\nb, 1 ,2,2\r\n",
        f'{HEAD.replace("job_id", " job_id ")}\n\n"a",0,10,"1"\nb,1,2,2\n\n',
        gzip.compress(f"{HEAD}\na,0,10,1\nb,1,2,2".encode(), mtime=0),  # the same bytes in every worker of pytest-xdist
    ],
)
def test_spreadsheets_and_packed_files(tmp_path: Path, text: str | bytes) -> None:
    jobs = read(tmp_path, text)
    assert (jobs.ids, jobs.segment_s.tolist(), jobs.gpus.tolist()) == (("a", "b"), [10, 2], [1, 2])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        (HEAD + "\n", "has a header but no jobs"),
        (HEAD + "\n\n\n", "has a header but no jobs"),
        ("a,b\n1,2\n", "jobs.csv:1: lacks the columns job_id, submit_time, duration, num_gpus; found: a, b"),
        (f"{HEAD},num_gpus\na,0,1,1,1\n", "has several columns num_gpus"),
        (f"{HEAD}\na,0,1,1,7,8\nb,0,1,1\n", "has more cells than the header's 4 in 1 row: line 2 (6)"),
        (HEAD.encode() + b"\nok,0,1,1\na\xff,0,1,1\n", "is not UTF-8 text: byte 0xff on line 3"),
        (f"{HEAD}\na,0,1\n", "num_gpus is empty in 1 row: line 2 (job 'a')"),
        (f"{HEAD}\na,,1,1\n", "submit_time is empty in 1 row: line 2 (job 'a')"),
        (f"{HEAD}\na,2017-10-01,1,1\n", "submit_time is not a number in 1 row: line 2 (job 'a', '2017-10-01')"),
        (f"{HEAD}\na,nan,1,1\n", "submit_time is not finite in 1 row: line 2 (job 'a', 'nan')"),
        (f"{HEAD}\na,-inf,1,1\n", "submit_time is not finite"),
        (f"{HEAD}\na,1e13,1,1\n", "submit_time is too large"),
        (f"{HEAD}\n\na,0,0,1\n", "duration is not above 0 s in 1 row: line 3 (job 'a', '0')"),
        (f"{HEAD}\na,0,-3,1\n", "duration is not above 0 s"),
        (f"{HEAD}\na,0,1e999,1\n", "duration is not finite"),
        (f"{HEAD}\na,0,1,0\n", "num_gpus is not a whole number of GPUs, at least 1, in 1 row: line 2 (job 'a', '0')"),
        (f"{HEAD}\na,0,1,0.5\n", "num_gpus is not a whole number"),
        (f"{HEAD}\na,0,1,3000000000\n", "num_gpus is too large"),
        (f"{HEAD}\n,0,1,1\n", "job_id is empty in 1 row: line 2"),
        (f"{HEAD}\na,0,1,1\nb,0,1,1\na,1,1,1\n", "job_id is not unique in 2 rows: line 2 (job 'a'), line 4 (job 'a')"),
        (f'{HEAD}\n"a\nb",0,1,0\n', "row 1 (job 'a\\nb', '0')"),
        (f"{HEAD},requested_time\na,0,1,1,0\n", "requested_time is not above 0 s"),
        (
            f"{HEAD},eligible_time\na,5,1,1,4.9\n",
            "eligible_time is before submit_time in 1 row: line 2 (job 'a', '4.9')",
        ),
        (f"{HEAD},nodes\na,0,1,1,0\n", "nodes is not a whole number, at least 1, in 1 row: line 2 (job 'a', '0')"),
        (f"{HEAD},nodes\na,0,1,1,n01\n", "nodes is not a number in 1 row"),
        (f"{HEAD},nice\na,0,1,1,0.5\n", "nice is not a whole number"),
        (f"{HEAD},depends_on\na,0,1,1,b;x\nb,0,1,1,\n", "not have in 1 row: line 2 (job 'a', 'x')"),
        (f"{HEAD},depends_on\na,0,1,1,a\n", "depends_on leads back to the job itself in 1 row: line 2 (job 'a', 'a')"),
        (f"{HEAD},depends_on\na,0,1,1,b\nb,0,1,1,c\nc,0,1,1,a\nd,0,1,1,a\n", "leads back to the job itself in 3 rows"),
    ],
)
def test_errors_are_reported_with_their_place(tmp_path: Path, text: str | bytes, said: str) -> None:
    assert said in refused(tmp_path, text)


def test_all_errors_are_reported_at_once_with_the_first_five(tmp_path: Path) -> None:
    rows = "".join(f"j{i},x,0,1.5\n" for i in range(1234))
    told = refused(tmp_path, f"{HEAD}\n{rows}j0,0,1,1\n")
    assert "submit_time is not a number in 1,234 rows: line 2 (job 'j0', 'x')" in told
    assert "line 6 (job 'j4', 'x') and 1,229 more" in told
    assert "line 7" not in told
    for text in (
        "duration is not above 0 s in 1,234 rows",
        "num_gpus is not a whole",
        "job_id is not unique in 2 rows",
    ):
        assert text in told


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read_jobs(tmp_path / "none.csv")


JOBS = st.lists(
    st.tuples(
        st.floats(-1e6, 1e6),
        st.floats(1e-3, 1e9),
        st.integers(1, 4096),
        st.sampled_from(["", "q", "z w", 'say "hi", you', "ü"]),
    ),
    min_size=1,
    max_size=30,
)


@given(jobs=JOBS)
def test_written_files_can_be_read(
    tmp_path_factory: pytest.TempPathFactory, jobs: list[tuple[float, float, int, str]]
) -> None:
    quoted = [(s, d, g, '"' + q.replace('"', '""') + '"') for s, d, g, q in jobs]
    text = f"{HEAD},vc\n" + "".join(f"j{i},{s!r},{d!r},{g},{q}\n" for i, (s, d, g, q) in enumerate(quoted))
    found = read(tmp_path_factory.getbasetemp(), text)
    order = sorted(range(len(jobs)), key=lambda i: jobs[i][0])
    assert found.ids == tuple(f"j{i}" for i in order)
    assert found.submit.tolist() == [jobs[i][0] for i in order]
    assert found.segment_s.tolist() == [jobs[i][1] for i in order]
    assert found.gpus.tolist() == [jobs[i][2] for i in order]
    assert [found.queues[q] for q in found.queue] == [jobs[i][3] or "(none)" for i in order]


@given(pairs=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=20))
def test_circles_are_those_that_a_search_finds(pairs: list[tuple[int, int]]) -> None:
    reach = np.zeros((10, 10), bool)
    for after, before in pairs:
        reach[after, before] = True
    for k in range(10):
        reach |= reach[:, k : k + 1] & reach[k]
    found = circular(np.array(pairs, np.int64).reshape(-1, 2), 10)
    assert found.tolist() == np.flatnonzero(reach.diagonal()).tolist()


def test_the_job_files_of_other_simulators(root: Path) -> None:
    files = sorted((root / ORACLES).glob("*/philly_*k_input.csv"))
    if not files:
        pytest.skip(f"{ORACLES} is not on this machine")
    for path in files:
        jobs = read_jobs(path)
        assert jobs.size == path.read_text().count("\n") - 1
        assert jobs.size == int(path.name.split("k_")[0].removeprefix("philly_")) * 1000
        assert jobs.notes == ()
