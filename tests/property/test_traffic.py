"""Counters become bytes that add up, however they are cut; rows of any bytes add up too."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpuctl.core.errors import InputError
from gpuctl.ingest.formats import (
    profile_jobs,
    suspensions,
    traffic_csv,
    traffic_flows,
    traffic_mountstats,
    traffic_netdev,
    traffic_nfsiostat,
    traffic_pai,
    traffic_prometheus,
)
from gpuctl.ingest.traffic.series import WRAP_MOST, Deltas, increase
from gpuctl.store.database import Store
from tests.example_counts import examples
from tests.traffic_loading import FIXTURES, Loaded

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpuctl.ingest.core.format import Format

Samples = list[tuple[str, int, float]]
STEPS = st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 10**7), st.integers(0, 10**9)), max_size=60)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with Store(tmp_path_factory.mktemp("property") / "gpuctl.duckdb", write=True) as opened:
        yield opened


def frame(samples: Samples) -> pl.DataFrame:
    return pl.DataFrame(samples, schema={"job": pl.String, "us": pl.Int64, "value": pl.Float64}, orient="row")


def taken(samples: Samples, cuts: list[int], *, cumulative: bool) -> tuple[pl.DataFrame, list[bool], int, int]:
    """Rows, which samples are late, restarts and wraps, of samples that come in pieces cut at `cuts`."""
    deltas = Deltas(cumulative=cumulative)
    ends = [*sorted(min(cut, len(samples)) for cut in cuts), len(samples)]
    pieces = [deltas.add(frame(samples[a:b])) for a, b in zip([0, *ends], ends, strict=False)]
    late = [each for piece in pieces for each in piece.late.to_list()]
    return pl.concat([piece.rows for piece in pieces]), late, deltas.restarts, deltas.wraps


def counters(steps: list[tuple[str, int, int]], start: int = 0, end: int | None = None) -> Samples:
    """Counters that grow by each step; those of `end` begin anew there."""
    at: dict[str, tuple[int, int]] = {}
    samples: Samples = []
    for job, us, size in steps:
        before = at.get(job, (0, start))
        at[job] = before[0] + us, before[1] + size
        samples.append((job, at[job][0], float(at[job][1] % end if end else at[job][1])))
    return samples


@settings(max_examples=examples(200))
@given(STEPS, st.integers(0, 2**40), st.lists(st.integers(0, 60), max_size=4))
def test_deltas_of_a_counter_add_up_to_what_it_grew_by(
    steps: list[tuple[str, int, int]], start: int, cuts: list[int]
) -> None:
    samples = counters(steps, start)
    rows, late, restarts, wraps = taken(samples, cuts, cumulative=True)
    assert (any(late), restarts, wraps) == (False, 0, 0)
    for job in {job for job, _, _ in samples}:
        values = [value for name, _, value in samples if name == job]
        times = [us for name, us, _ in samples if name == job]
        own = rows.filter(pl.col("job") == job)
        assert own["bytes_read"].sum() == values[-1] - values[0]
        assert own["seconds"].sum() == pytest.approx((times[-1] - times[0]) / 1e6)
        assert (own["bytes_read"][0], own["seconds"][0]) == (0, None)


@settings(max_examples=examples(200))
@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.integers(0, 50), st.floats(0, 2**33, allow_subnormal=False)), max_size=50
    ),
    st.lists(st.integers(0, 50), max_size=5),
    st.booleans(),
)
def test_the_cut_into_pieces_changes_nothing(samples: Samples, cuts: list[int], cumulative: bool) -> None:
    whole = taken(samples, [], cumulative=cumulative)
    pieces = taken(samples, cuts, cumulative=cumulative)
    assert pieces[0].equals(whole[0])
    assert pieces[1:] == whole[1:]
    assert whole[0].height + sum(whole[1]) == len(samples)
    assert (whole[0]["bytes_read"] >= 0).all()
    # late is what does not come after the latest sample of its job before it
    latest: dict[str, int] = {}
    for (job, us, _), late in zip(samples, whole[1], strict=True):
        assert late == (us <= latest.get(job, us - 1))
        latest[job] = max(us, latest.get(job, us))


@given(st.lists(st.tuples(st.just("a"), st.integers(1, 10**6), st.integers(0, int(WRAP_MOST))), max_size=60))
def test_a_counter_of_32_bits_loses_nothing_when_it_restarts(steps: list[tuple[str, int, int]]) -> None:
    whole, wrapped = counters(steps, 2**31), counters(steps, 2**31, end=2**32)
    rows, _, restarts, wraps = taken(wrapped, [], cumulative=True)
    assert rows["bytes_read"].sum() == (whole[-1][2] - whole[0][2] if whole else 0)
    assert restarts == 0
    assert wraps == (whole[-1][2] // 2**32 - whole[0][2] // 2**32 if whole else 0)


@given(st.lists(st.integers(2**33, 2**52), min_size=2, max_size=30))
def test_a_recording_counts_as_reading_it_does(values: list[int]) -> None:
    rows, *_ = taken([("a", at, float(value)) for at, value in enumerate(values)], [], cumulative=True)
    assert rows["bytes_read"].to_list()[1:] == [increase(a, b) for a, b in pairwise(values)]


@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    flows=st.lists(
        st.tuples(st.sampled_from("ab"), st.integers(0, 3000), st.integers(0, 400), st.integers(0, 10**9)),
        min_size=1,
        max_size=25,
    )
)
def test_flows_that_overlap_keep_their_bytes_and_never_their_overlap(
    flows: list[tuple[str, int, int, int]], store: Store
) -> None:
    lines = "".join(f"{job},{at / 10},{(at + length) / 10},{size}\n" for job, at, length, size in flows)
    store.execute("BEGIN")
    try:
        series = Loaded(traffic_flows.FORMAT, f"job_id,start,end,bytes\n{lines}", store).series()
    finally:
        store.execute("ROLLBACK")
    for job in {job for job, *_ in flows}:
        rows = series[job]
        assert sum(size for _, size, _ in rows) == pytest.approx(sum(s for j, *_, s in flows if j == job), rel=1e-9)
        starts = [at - (span or 0) for at, _, span in rows]
        assert starts[0] == pytest.approx(min(at for j, at, *_ in flows if j == job) / 10)
        assert starts[1:] == pytest.approx([at for at, _, _ in rows[:-1]])
        assert min(size for _, size, _ in rows) >= 0


def _csv(header: str, row: str) -> bytes:
    return "\n".join([header, *(row.replace("#", str(k)) for k in range(6))]).encode()


CASES: dict[str, tuple[Format, bytes]] = {
    "csv": (traffic_csv.FORMAT, _csv("job_id,t,bytes", 'a,#,"5"')),
    "counters": (traffic_csv.FORMAT, _csv("job_id,t,bytes_total", "a,#,5#")),
    "jobs": (profile_jobs.FORMAT, _csv("job_id,model,batch,samples,gpus,epochs,cached", "j#,m,3,4,1.5,6,yes")),
    "suspensions": (suspensions.FORMAT, _csv("job_id,suspend_s,resume_s,mode", "j,1.#,2,epoch")),
    "flows": (traffic_flows.FORMAT, (FIXTURES / "nfdump-1.7.1.csv").read_bytes()),
    "pai": (traffic_pai.FORMAT, _csv(",".join(traffic_pai.COLUMNS), "j,t,w,i,m,g,1,2,3,4,5,6,7,8,9,1#")),
    "netdev": (traffic_netdev.FORMAT, (FIXTURES / "netdev.txt").read_bytes()[:2000]),
    "mountstats": (traffic_mountstats.FORMAT, (FIXTURES / "mountstats.txt").read_bytes()[:5000]),
    "nfsiostat": (traffic_nfsiostat.FORMAT, (FIXTURES / "nfsiostat.txt").read_bytes()[:6000]),
    "prometheus": (traffic_prometheus.FORMAT, (FIXTURES / "prometheus.json").read_bytes()),
}
PIECES = st.sampled_from(
    [b"", b"\n", b'"', b",", b"\x00", b"\xff", b"-1", b"1e999", b"nan", b"99999999999999999999", b":", b"{", b"]",
     b"1795251000", b"2026-11-21T08:54:49", b"device x mounted on /y with fstype nfs", b"read: ops/s kB/s k",
     b"Summary"]
)  # fmt: skip


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(edits=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 12), PIECES), max_size=4), end=st.floats(0, 1))
def test_rows_add_up_whatever_the_bytes(
    name: str, edits: list[tuple[float, int, bytes]], end: float, store: Store
) -> None:
    fmt, data = CASES[name]
    for place, gone, piece in edits:
        at = int(place * len(data))
        data = data[:at] + piece + data[at + gone :]
    data = data[: int(len(data) * (1 if end > 0.5 else 2 * end))]
    fmt.sniff("x", data)
    store.execute("BEGIN")
    try:
        rows_in, loaded, rejected = Loaded(fmt, data, store).counts
        assert rows_in == loaded + rejected
        assert store.value("SELECT count(*) FROM traffic WHERE source < 0 OR bytes_read < 0 OR seconds <= 0") == 0
    except InputError:
        assert store.value("SELECT count(*) FROM traffic") == 0
    finally:
        store.execute("ROLLBACK")


@pytest.mark.parametrize("name", [name for name in CASES if name != "nfsiostat"])
def test_a_file_cut_anywhere(name: str, store: Store) -> None:
    fmt, data = CASES[name]
    data = data[:700]
    before = -1
    for end in range(0, len(data), 23):
        store.execute("BEGIN")
        try:
            rows_in, loaded, rejected = Loaded(fmt, data[:end], store).counts
        except InputError:
            continue
        finally:
            store.execute("ROLLBACK")
        assert rows_in == loaded + rejected
        assert rejected <= 2
        assert loaded >= before - 1
        before = loaded
