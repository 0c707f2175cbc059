"""Whatever the bytes are: nothing crashes, and every record is loaded or rejected; order and form never matter."""

from __future__ import annotations

import io
import random
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from gpuctl.core.errors import InputError
from gpuctl.core.line_reader import RowError
from gpuctl.ingest.core.sink import StoreSink
from gpuctl.ingest.formats import yarn_rm_log
from gpuctl.ingest.yarn import facts as f
from gpuctl.ingest.yarn.audit import read_audit
from gpuctl.ingest.yarn.dumps import items
from gpuctl.ingest.yarn.resources import gpu_seconds_of_entries, read_resource, resource_of_json
from gpuctl.ingest.yarn.sniffing import daemon_of
from gpuctl.ingest.yarn.summary import read_summary
from gpuctl.store.database import Store
from tests.unit.ingest.yarn import cluster as y
from tests.unit.ingest.yarn.test_dumps import capacity_scheduler
from tests.unit.ingest.yarn.test_events import ailing, restarted
from tests.unit.ingest.yarn.test_merge import story

LIVES = (
    *((1.5, "Transitioning to active state"), (44.5, "Transitioning to active state")),
    *((70, "n1:8041 Node Transitioned from RUNNING to LOST"), (80, "n1:8041 Node Transitioned from NEW to RUNNING")),
)
"""When a ResourceManager came back, with containers handed out and not running; when a machine went and came back."""
FEW = settings(max_examples=8, suppress_health_check=list(HealthCheck))
SOURCES: dict[str, bytes] = {
    "rm.log": y.rm_log(y.everything(), modern=True).text(),
    "restarted-rm.log": restarted()[1].text() + ailing().text(),
    "old-rm.log": y.rm_log(y.everything()).text(),
    "nm.log": y.nm_log(y.everything(), "n1").text(),
    "apps.json": y.rest_apps(y.everything()),
    "containers.json": y.ats_containers(y.gang()),
    "timeline.json": y.ats_apps(y.everything()),
    "summary.log": y.summary_log(y.everything()),
    "scheduler.json": capacity_scheduler(),
}


def damaged(data: bytes, seed: int) -> bytes:
    """Bytes changed, stretches cut out, doubled, swapped; lines in another order."""
    rng = random.Random(seed)
    lines = data.splitlines(keepends=True)
    if rng.random() < 0.3:
        rng.shuffle(lines)
    out = bytearray(b"".join(lines))
    for _ in range(rng.randint(1, 12)):
        a = rng.randrange(len(out))
        b = min(len(out), a + rng.choice((1, 3, 30, 300)))
        what = rng.randrange(4)
        if what == 0:
            out[a] = rng.randrange(256)
        elif what == 1:
            del out[a:b]
        elif what == 2:
            out[a:a] = out[a:b]
        else:
            out[a:a] = rng.choice((b"\n", b"\0", b"\xff\xfe", b"{", b"]}", b",", b"\\", b'"', b"9" * 40, b"-1"))
        if not out:
            break
    return bytes(out)


@FEW
@given(st.sampled_from(sorted(SOURCES)), st.integers(0, 2**32))
@example("rm.log", 0)
def test_damaged_sources(name: str, seed: int) -> None:
    from gpuctl.ingest.pipeline.registry import all_formats

    data = SOURCES[name]
    fmt = next(fmt for fmt in all_formats() if fmt.sniff(name, data[:65536]))
    bad = damaged(data, seed)
    with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "s.duckdb", write=True) as store:
        sink = StoreSink(store, "c", 1, "UTC")
        try:
            fmt.load(io.BytesIO(bad), sink)
        except InputError:
            assert name == "scheduler.json"  # the only one that is read as a whole
        assert sink.rows_in == sink.rows_loaded + sink.rows_rejected
        sink.close()


@given(st.binary(max_size=2000))
def test_any_bytes(data: bytes) -> None:
    daemon_of(data)
    for item in items(io.BytesIO(data), ("app", "node"), ("id",)):
        assert (item.value is None) == (item.fault is not None)


@given(st.text(max_size=300))
def test_any_text(text: str) -> None:
    read_audit(text)
    read_resource(text)
    with pytest.raises(RowError):
        read_summary(text)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ("entry", "key", "value", "memory", "vCores", "resourceInformations", "resourceInformation", "name")
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=10,
)


@given(json_values)
def test_any_json(value: Any) -> None:
    gpu_seconds_of_entries(value)
    resource_of_json(value)
    with pytest.raises(RowError) if isinstance(value, (bool, str, list, dict)) else Tolerated():
        f.epoch_millis(value)


class Tolerated:
    """A number may be a time or may not."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        return kind is RowError


@given(st.text(max_size=60).filter(lambda text: "\r" not in text))
def test_a_summary_gives_back_every_name(name: str) -> None:
    app = y.gang()
    app.name = name
    assert (read_summary(y.summary(app)).name or "") == name


def _lived() -> y.Log:
    log = y.rm_log(y.everything(), modern=True)
    for seconds, message in LIVES:
        log.add(seconds, f"{y.RM}.ResourceManager", message)
    return log


def _told(files: list[list[bytes]]) -> dict[str, list[Any]]:
    with tempfile.TemporaryDirectory() as folder:
        db, _ = y.load(Path(folder), {f"rm.log.{i}": b"".join(piece) for i, piece in enumerate(files)})
        told = story(db)
    del told["field_sources"]
    return told


@cache
def _told_whole() -> dict[str, list[Any]]:
    """By the log in one piece."""
    return _told([_lived().lines()])


@settings(FEW, max_examples=3)
@given(st.randoms(use_true_random=False), st.integers(1, 4))
def test_a_log_in_pieces_gives_the_same(rng: random.Random, parts: int) -> None:
    lines = _lived().lines()
    # the second line is of no logger of YARN's: a piece of it alone would be no known log
    cuts = sorted(rng.sample(range(2, len(lines)), parts))
    pieces = [lines[max(0, a - rng.randrange(4)) : b] for a, b in zip([0, *cuts], [*cuts, len(lines)], strict=True)]
    rng.shuffle(pieces)
    assert _told(pieces) == _told_whole()


@FEW
@given(st.booleans(), st.booleans(), st.integers(0, 2**32))
def test_many_at_once_tell_what_one_by_one_tell(modern: bool, assigned: bool, seed: int) -> None:
    log = y.rm_log(y.everything(), modern=modern, assigned=assigned).text()
    log = log if seed % 3 == 0 else damaged(log, seed)
    found = []
    for at_once in (True, False):
        with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "s.duckdb", write=True) as store:
            sink = StoreSink(store, "c", 1, "UTC")
            with pytest.MonkeyPatch.context() as patch:
                if not at_once:
                    patch.setattr(yarn_rm_log, "_AT_ONCE", 0)
                yarn_rm_log.load(io.BytesIO(log), sink)
            rows = [
                store.frame(f"SELECT * FROM {table} ORDER BY ALL").rows()
                for table in ("jobs", "attempts", "containers", "machines")
            ]
            found.append((sink.rows_rejected, sink.reasons, [repr(row) for table in rows for row in table]))
            sink.close()
    assert found[0] == found[1]
