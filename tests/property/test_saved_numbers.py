"""A number of a saved model may be anything: what loads must still answer sensibly, and the rest is refused."""

from __future__ import annotations

import hashlib
import json
import math
import shutil
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.cli_runner import run_command
from tests.example_counts import SEARCHING, examples

if TYPE_CHECKING:
    from collections.abc import Iterator

SAMPLES = Path(__file__).resolve().parents[2] / "sample_data"
ROOT = SAMPLES.parent
JOBS, CHAIN_LOG = SAMPLES / "jobs.csv", SAMPLES / "chain" / "sacct.txt.gz"
TRAINED = {
    "runtime": ("train", "runtime", JOBS),
    "overhead": ("train", "overhead", SAMPLES / "pickyman" / "suspensions.csv"),
    "users": ("fit", JOBS, "--method", "users"),
    "parametric": ("fit", JOBS, "--method", "parametric"),
    "lublin": ("fit", JOBS, "--method", "lublin-published"),
    "dag": ("dag", "distil", "--train", "1", "--rounds", "1", "--jobs", "4", "--test", "0"),
    "accel": ("accel", "train", "--generations", "1"),
    "deferrable": ("deferrable", "train", "--minutes", "0.01"),
    "wait": ("train", "wait", CHAIN_LOG),
    "chain": ("chain", "train", CHAIN_LOG, "--nodes", "16", "--limit", "24h"),
}
"""A command that makes a model of each kind; -o is added."""
USED: dict[str, tuple[object, ...]] = {
    "runtime": ("predict", "runtime", "--jobs", JOBS, "--model", "MODEL"),
    "overhead": ("predict", "overhead", "--epoch-s", "600", "--phase-s", "500", "--gpus", "2", "--model", "MODEL"),
    "users": ("synth", "MODEL", "--jobs", "50", "-o", "OUT"),
    "dag": ("dag", "simulate", "MADE/stages.csv", "--policy", "tree:MODEL"),
    "accel": ("accel", "simulate", "MADE/requests.csv", "--policy", "relmas:MODEL"),
    "deferrable": ("deferrable", "simulate", "MADE/slots", "--policy", "osdec:MODEL"),
    "wait": ("predict", "wait", "--nodes", "2", "--limit", "1h", "--model", "MODEL"),
    "chain": ("chain", "advise", "MODEL", "--squeue", ROOT / "docs" / "examples" / "chain_queue.json", "--job", "4205"),
}
USED |= {"parametric": USED["users"], "lublin": USED["users"]}
QUICK = [kind for kind in TRAINED if SEARCHING or kind not in {"wait", "chain", "accel", "deferrable"}]
"""Those that take seconds of CPU to train are only tried in a search."""

ODD = st.sampled_from([
    -1, 0, -0.5, 0.5, 3, 1e-300, 1e-9, 1e6, 1e12, 1e300, -1e300, -1e9, 2**31, 2**63, -(2**63), 10**30, 10**400,
    math.nan, math.inf, -math.inf, None, True, "x", "1", [], {}, [1],
])  # fmt: skip
ODD_IN_ARRAYS = st.sampled_from([math.nan, math.inf, -math.inf, -1, 0, 0.5, 3, 1e9, -1e9, 1e15, 1e30, 1e300, 2**62])


@pytest.fixture(scope="module", autouse=True)
def made() -> Iterator[Path]:
    """Inputs that the models are run on, and the models."""
    yield _made()
    shutil.rmtree(_made())
    _made.cache_clear()
    _model.cache_clear()


@cache
def _made() -> Path:
    folder = Path(mkdtemp())
    for words in (
        ("dag", "generate", "--jobs", "4", "-o", folder / "stages.csv"),
        ("accel", "generate", "--n", "20", "--load", "0.8", "-o", folder / "requests.csv"),
        ("deferrable", "convert", JOBS, "--share", "30", "-o", folder / "slots"),
    ):
        done = run_command(*words)
        assert done.returncode == 0, done.stderr
    return folder


@cache
def _model(kind: str) -> Path:
    folder = _made() / kind
    done = run_command(*TRAINED[kind], "-o", folder)
    assert done.returncode == 0, done.stderr
    return folder


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where a value stands that could be another one: each leaf, and each list as a whole."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _places(each, (*path, key))
    elif isinstance(value, list):
        yield path
        for k, each in enumerate(value):
            yield from _places(each, (*path, k))
    else:
        yield path


def _edit_json(path: Path, data: st.DataObject) -> object:
    value = json.loads(path.read_text())
    place = data.draw(st.sampled_from([p for p in _places(value) if p and p[0] != "files"]))
    odd, at = data.draw(ODD), value
    for key in place[:-1]:
        at = at[key]
    at[place[-1]] = odd
    path.write_text(json.dumps(value))
    return place, odd


def _edit_array(path: Path, data: st.DataObject) -> object:
    values = np.load(path).copy()
    odd = data.draw(ODD_IN_ARRAYS)
    if values.dtype.kind in "iu":
        low, high = (int(limit) for limit in (np.iinfo(values.dtype).min, np.iinfo(values.dtype).max))
        odd = min(max(int(odd), low), high) if math.isfinite(odd) else high
    at = data.draw(st.none() | st.integers(0, values.size - 1)) if values.size else None
    with np.errstate(over="ignore"):
        values.reshape(-1)[slice(None) if at is None else at] = odd
    with path.open("wb") as file:
        np.lib.format.write_array(file, values, version=(1, 0))
    return at, odd


def _edited(kind: str, folder: Path, data: st.DataObject) -> object:
    """Put another value somewhere into a copy of a model, and say so in its card."""
    shutil.copytree(_model(kind), folder)
    path = data.draw(st.sampled_from(sorted(p for p in folder.iterdir() if p.suffix in {".json", ".npy"})))
    what = _edit_json(path, data) if path.suffix == ".json" else _edit_array(path, data)
    card = json.loads((folder / "card.json").read_text())
    for name in card["files"]:
        content = (folder / name).read_bytes()
        card["files"][name] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    (folder / "card.json").write_text(json.dumps(card))
    return path.name, what


def _check_answer(kind: str, table: dict[str, Any]) -> None:
    for row in table["rows"]:
        for low, high in (("lower_s", "predicted_s"), ("predicted_s", "upper_s"), ("lower_s", "upper_s")):
            if row.get(low) is not None and row.get(high) is not None:
                assert 0 <= row[low] <= row[high], (kind, row)
        for name, value in row.items():
            if isinstance(value, float) and name.endswith(("_s", "_h", "_ms")):
                assert math.isfinite(value), (kind, row)


@pytest.mark.parametrize("kind", QUICK)
@settings(
    max_examples=examples(120), deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)  # fmt: skip
@given(data=st.data())
def test_a_model_with_an_odd_number_answers_or_is_refused(kind: str, data: st.DataObject) -> None:
    folder = Path(mkdtemp())
    try:
        what = _edited(kind, folder / "m", data)
        jobs, words = folder / "jobs.csv", [str(word) for word in USED[kind]]
        for name, place in (("MODEL", folder / "m"), ("OUT", jobs), ("MADE", _made())):
            words = [word.replace(name, str(place)) for word in words]
        done = run_command(*words, "--json")
        assert done.returncode in {0, 3}, (what, done.stderr)
        assert "Warning" not in done.stderr, (what, done.stderr)
        if done.returncode == 0:
            for table in json.loads(done.stdout)["tables"].values():
                _check_answer(kind, table)
        if jobs.exists():
            drawn = pl.read_csv(jobs).select(pl.col("submit_time", "duration", "num_gpus").cast(pl.Float64))
            assert all(np.isfinite(each).all() and (each >= 0).all() for each in drawn.to_numpy().T), what
    finally:
        shutil.rmtree(folder)
