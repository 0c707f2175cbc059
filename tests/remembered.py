"""Has what takes long made once of the same inputs, by whichever command comes first, and kept in a folder.

For tests of how commands read their options and tell what they found, not of what they find. All that is kept was made
by the program in the same run of the tests; what fails is not kept. Commands that name another folder, or none, make
all of it themselves.
"""

from __future__ import annotations

import hashlib
import os
import pickle  # noqa: TID251 - of a folder that this run made
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def begin(folder: Path) -> None:
    """Have this process look into a folder before it works, and put what it made there."""
    _analyses(folder)
    _ingests(folder)
    drawings(folder)
    _models_of_waits(folder)


def _analyses(folder: Path) -> None:
    """Analyses of the same bytes with the same options: they only read the store, where they read nothing beside it."""
    from gpuctl.analyze import run

    made = run.analyze

    def analyze(store: Any, options: Any, progress: Any = None) -> Any:
        if store.lake is not None or options.signatures:
            return made(store, options, progress)
        asked = (store.path.read_bytes(), repr(replace(options, command="", cluster=store.cluster(options.cluster))))
        found = _kept(folder, asked, lambda: made(store, options, progress))
        return replace(found, command=options.command)

    run.analyze = analyze


def _ingests(folder: Path) -> None:
    """New stores of the same files, read as gpuctl reads them of itself: a copy of the first one."""
    from gpuctl.ingest.pipeline import load
    from gpuctl.ingest.pipeline.registry import all_formats
    from gpuctl.store import trusted_stores
    from gpuctl.store.schema import MIGRATIONS

    made, named = load.ingest, load.cluster_name

    def ingest(paths: Sequence[Path], db_path: Path, **how: Any) -> Any:
        given = {name: value for name, value in how.items() if value is not None}
        formats = given.pop("formats", None) or all_formats()
        given.pop("progress", None), given.pop("tell", None), given.pop("debug", None)
        cluster, then, engine = given.pop("cluster", None), given.pop("then", None), given.pop("engine", None)
        new = paths and not db_path.exists() and not trusted_stores.log_of(db_path).exists()
        own = any(one is not other for one, other in zip(formats, all_formats(), strict=False))
        if not new or own or len(formats) != len(all_formats()) or (engine and engine.kind != "local"):
            return made(paths, db_path, **how)
        if any(name not in {"timezone", "dry_run"} or value is True for name, value in given.items()):
            return made(paths, db_path, **how)
        asked = (
            *(part for path in paths for part in _contents(path)),
            named(paths, cluster), cluster is None, then is None, repr(given), os.environ.get("TZ"),
        )  # fmt: skip

        def make() -> tuple[Any, bytes]:
            report = made(paths, db_path, **how)
            return report, db_path.read_bytes()

        report, stored = _kept(folder, asked, make)
        if not db_path.exists():
            db_path.write_bytes(stored)
            trusted_stores.note(db_path, len(MIGRATIONS))
        return report

    load.ingest = ingest


def _contents(path: Path) -> list[object]:
    """What a path is called, and what each file under it is called, was changed and holds."""
    files = [path] if path.is_file() else sorted(each for each in path.rglob("*") if each.is_file())
    return [str(path), *(part for each in files for part in (str(each), each.stat().st_mtime_ns, each.read_bytes()))]


def drawings(folder: Path) -> None:
    """Charts of the same tables."""
    from gpuctl.reports.charts import registry

    made = registry.draw

    def draw(chart: Any, table: Any, units: Any = None) -> Any:
        asked = (repr(chart), pickle.dumps(table), pickle.dumps(units) if chart.kind in registry._IN_UNITS else b"")
        return _kept(folder, asked, lambda: made(chart, table, units))

    registry.draw = draw


def _models_of_waits(folder: Path) -> None:
    """What is learnt of the same jobs."""
    from gpuctl.waits import learn

    made = learn.train

    def train(log: Any, test_share: float, *progress: Any) -> Any:
        return _kept(folder, (pickle.dumps(log), test_share), lambda: made(log, test_share, *progress))

    learn.train = train


def _kept(folder: Path, asked: Sequence[object], make: Callable[[], Any]) -> Any:
    """What was made for this before, or is made now."""
    key = hashlib.sha256(make.__qualname__.encode())
    for part in asked:
        text = part if isinstance(part, bytes) else repr(part).encode()
        key.update(b"%d:" % len(text) + text)
    kept = folder / key.hexdigest()
    if not kept.exists():
        found = make()
        part = kept.with_suffix(f".{os.getpid()}")
        part.write_bytes(pickle.dumps(found))
        part.rename(kept)
        return found
    return pickle.loads(kept.read_bytes())
