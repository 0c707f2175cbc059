"""Checks of saved models: that a folder is complete and loads, its age, its features and its versions."""

from __future__ import annotations

import hashlib
import json
from importlib import metadata
from typing import TYPE_CHECKING, Any

from gpuctl.core.errors import GpuctlError, InputError
from gpuctl.core.storable_text import plural
from gpuctl.doctor.check import Finding, Status, abbreviate, finding

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from gpuctl.doctor.check import DoctorContext

OLD_DAYS = 90
"""Age in days above which a model is a warning: users, programs and queues change."""
_AGAIN = "retrain it: gpuctl train"


def models(context: DoctorContext) -> Iterator[Finding]:
    """Check each folder that the user named."""
    for folder in context.models:
        yield from _model(folder, context)


def _model(folder: Path, context: DoctorContext) -> Iterator[Finding]:
    from gpuctl.predictors.card import CARD, read_card

    try:
        card = read_card(folder)
        kind = _load(folder, card)
        written = (folder / CARD).stat().st_mtime
    except (InputError, OSError) as error:
        problem = error if isinstance(error, InputError) else InputError(str(error), path=str(folder))
        yield finding("model_folder", problem.message, problem.hint or _AGAIN, Status.FAIL)
        return
    yield finding(
        "model_folder", f"{folder}: {kind}, {plural(len(card['files']), 'file')} as listed in the card, loads"
    )
    yield age(folder, (context.now - written) / 86_400, card)
    if kind == "runtime":
        from gpuctl.predictors.history import described

        yield features(folder, card, described())
    elif kind == "wait":
        from gpuctl.waits.tables import described as wait_features

        yield features(folder, card, wait_features())
        if context.db is not None:
            yield drift(folder, context.db)
    elif kind != "workload":
        from gpuctl.predictors.overhead import TERMS

        # a fit has one coefficient per term, in this order
        terms = card.get("terms")
        names = [str(term) for term in terms] if isinstance(terms, list) else []
        yield features(folder, {"features": dict.fromkeys(names, "")}, dict.fromkeys(TERMS, ""))
    yield versions(folder, card)


def _load(folder: Path, card: Mapping[str, Any]) -> str:
    """Load the whole model as ``gpuctl predict`` does, and return its kind.

    Raises:
        InputError: it does not load, or no command of this gpuctl takes such a model.
    """
    from gpuctl.predictors import history_folder, overhead
    from gpuctl.predictors.card import CARD, load_folder

    kind = card.get("kind")
    if kind == "runtime":
        history_folder.load(folder)
    elif kind == "overhead":
        name = "overhead.json"
        overhead.from_json(load_folder(folder, "overhead").json(name), str(folder / name))
    elif kind == "wait":
        from gpuctl.waits import wait_model_folder as wait_folder

        wait_folder.load(folder)
    elif kind == "workload":
        from gpuctl.workloads import workload_folder

        workload_folder.load(folder)
    else:
        found = str(kind)[:40]
        raise InputError(
            f"a model of kind {found!r}, expected 'runtime', 'overhead', 'wait' or 'workload'", path=str(folder / CARD),
            hint="use the version of gpuctl that made it",
        )  # fmt: skip
    return str(kind)


def age(folder: Path, days: float, card: Mapping[str, Any]) -> Finding:
    """Return the finding on a model's age, by the time of its card (a copy may be younger than the model).

    Args:
        folder: of the model.
        days: since the card was written.
        card: of the model; may state which jobs it was trained on.
    """
    settings = card.get("settings")
    window = settings.get("submitted, fit") if isinstance(settings, dict) else None
    trained = f", trained on jobs submitted {window}"[:120] if isinstance(window, str) else ""
    evidence = f"{folder}: written {plural(max(0, round(days)), 'day')} ago{trained}"
    return finding("model_age", evidence, f"{_AGAIN}, on newer logs" if days > OLD_DAYS else "")


def features(folder: Path, card: Mapping[str, Any], today: Mapping[str, str]) -> Finding:
    """Return the finding on a model's features: each must be one of today's, with the same definition.

    Args:
        folder: of the model.
        card: its ``features``: definitions by name.
        today: the definitions of this gpuctl, by name.
    """
    found = card.get("features")
    if not isinstance(found, dict) or not found:
        return finding("model_features", f"{folder}: the card lists no features", _AGAIN)
    same = {name: today.get(name) for name in found}
    evidence = f"{folder}: {plural(len(found), 'feature')}, schema {digest(found)}"
    changed = [name for name in found if found[name] != same[name]]
    if changed:
        evidence += f", in this gpuctl {digest(same)}: {abbreviate(changed)} defined otherwise"
        return finding("model_features", evidence, _AGAIN)
    return finding("model_features", f"{evidence}, as in this gpuctl")


def drift(folder: Path, db: Path) -> Finding:
    """Return the finding on whether a model of waits still holds on jobs that started since it was trained."""
    from gpuctl.store.database import Store
    from gpuctl.waits import drift as wait_drift
    from gpuctl.waits import wait_model_folder as wait_folder
    from gpuctl.waits.queue_log import from_store

    try:
        model = wait_folder.load(folder)
        with Store(db) as store:
            log, _ = from_store(store, None)
        if log.unit != model.unit:
            raise InputError(f"its jobs are counted in {log.unit}, the model's training jobs in {model.unit}")
        found = wait_drift.measure_coverage(model, log)
    except GpuctlError as error:
        evidence = f"{folder}: not compared with {db}: {error.message}"
        return finding("model_drift", evidence, "give a store with only the model's cluster")
    low, high = wait_drift.HOLDS
    evidence = f"{folder}: {plural(found.jobs, 'job')} of {db} started since it was trained"
    if found.jobs < wait_drift.FEWEST:
        return finding("model_drift", f"{evidence}, too few to judge (at least {wait_drift.FEWEST})")
    evidence += (
        f"; its 80 % interval covered {found.followed_pct:.0f} % of their waits ({found.as_saved_pct:.0f} % with the "
        f"levels as saved; {low:.0f} to {high:.0f} expected)"
    )
    if found.fails:
        return finding("model_drift", f"{evidence}: out of date", f"{_AGAIN} wait, on newer logs")
    return finding("model_drift", evidence)


def digest(definitions: Mapping[str, Any]) -> str:
    """Return a short name of a list of features and their definitions, in order: 12 digits of a SHA-256."""
    return hashlib.sha256(json.dumps(list(definitions.items())).encode()).hexdigest()[:12]


def versions(folder: Path, card: Mapping[str, Any]) -> Finding:
    """Return the finding on the versions of a model: LightGBM reads its own files within one major version."""
    made = card.get("made_with")
    found = str((made if isinstance(made, dict) else {}).get("lightgbm", "unknown"))[:40]
    have = metadata.version("lightgbm")
    evidence = f"{folder}: made with gpuctl {str(card.get('gpuctl', 'unknown'))[:40]}, LightGBM {found}; here {have}"
    return finding("model_versions", evidence, "" if found.partition(".")[0] == have.partition(".")[0] else _AGAIN)
