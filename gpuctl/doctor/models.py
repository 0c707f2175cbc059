"""Checks of saved models: that a folder is whole and loads, how old it is, and that its features are today's."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from gpuctl.core.errors import InputError
from gpuctl.core.text import plural
from gpuctl.doctor.check import Finding, Status, few

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from gpuctl.doctor.check import Given

OLD_DAYS = 90
"""Days; an older model makes a warning: users, programs and queues change."""
_AGAIN = "train it again: gpuctl train"


def models(given: Given) -> Iterable[Finding]:
    """Each folder that the user named."""
    for folder in given.models:
        yield from _model(folder, given)


def _model(folder: Path, given: Given) -> Iterable[Finding]:
    from gpuctl.predictors.card import CARD, read_card

    try:
        card = read_card(folder)
        kind = _load(folder, card)
        written = (folder / CARD).stat().st_mtime
    except (InputError, OSError) as error:
        said = error if isinstance(error, InputError) else InputError(str(error), path=str(folder))
        yield Finding("model_folder", Status.FAIL, said.message, said.hint or _AGAIN)
        return
    evidence = f"{folder}: {kind}, {plural(len(card['files']), 'file')} as the card says, loads"
    yield Finding("model_folder", Status.OK, evidence)
    yield age(folder, (given.now - written) / 86_400, card)
    if kind == "runtime":
        from gpuctl.predictors.history import described

        yield features(folder, card, described())
    elif kind == "wait":
        from gpuctl.waits.tables import described as of_waits

        yield features(folder, card, of_waits())
        if given.db is not None:
            yield drift(folder, given.db)
    elif kind != "workload":
        from gpuctl.predictors.overhead import TERMS

        # what is fitted are coefficients, one a term, in this order
        asked = dict.fromkeys(TERMS, "")
        listed = card.get("terms")
        words = [str(word) for word in listed] if isinstance(listed, list) else []
        yield features(folder, {"features": dict.fromkeys(words, "")}, asked)
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
        from gpuctl.waits import folder as of_waits

        of_waits.load(folder)
    elif kind == "workload":
        from gpuctl.workloads import folder as of_workloads

        of_workloads.load(folder)
    else:
        found = str(kind)[:40]
        raise InputError(
            f"a model of kind {found!r}, expected 'runtime', 'overhead', 'wait' or 'workload'", path=str(folder / CARD),
            hint="use the gpuctl that it was made with",
        )  # fmt: skip
    return str(kind)


def age(folder: Path, days: float, card: Mapping[str, Any]) -> Finding:
    """The finding on a model's age, by when its card was written (a copy may be younger than the model).

    Args:
        folder: of the model.
        days: since then.
        card: of the model; may say which jobs it learnt from.
    """
    settings = card.get("settings")
    window = settings.get("submitted, fit") if isinstance(settings, dict) else None
    learnt = f", learnt from jobs submitted {window}"[:120] if isinstance(window, str) else ""
    evidence = f"{folder}: written {plural(max(0, round(days)), 'day')} ago{learnt}"
    if days > OLD_DAYS:
        return Finding("model_age", Status.WARN, evidence, f"{_AGAIN}, on newer logs")
    return Finding("model_age", Status.OK, evidence)


def features(folder: Path, card: Mapping[str, Any], today: Mapping[str, str]) -> Finding:
    """The finding on a model's features: each must be one of today's, and defined in the same words.

    Args:
        folder: of the model.
        card: its ``features``: what each is, by name.
        today: the same, as this gpuctl has it.
    """
    found = card.get("features")
    if not isinstance(found, dict) or not found:
        return Finding("model_features", Status.WARN, f"{folder}: the card lists none", _AGAIN)
    same = {name: today.get(name) for name in found}
    evidence = f"{folder}: {plural(len(found), 'feature')}, schema {digest(found)}"
    changed = [name for name in found if found[name] != same[name]]
    if changed:
        evidence += f", in this gpuctl {digest(same)}: {few(changed)} defined otherwise"
        return Finding("model_features", Status.WARN, evidence, _AGAIN)
    return Finding("model_features", Status.OK, f"{evidence}, as in this gpuctl")


def drift(folder: Path, db: Path) -> Finding:
    """The finding on whether a model of waits still holds on jobs of a store that came after those it learnt from."""
    from gpuctl.core.errors import GpuctlError
    from gpuctl.store.database import Store
    from gpuctl.waits import drift as of_waits
    from gpuctl.waits import folder as saved
    from gpuctl.waits.log import from_store

    try:
        model = saved.load(folder)
        with Store(db) as store:
            log, _ = from_store(store, None)
        if log.unit != model.unit:
            raise InputError(f"its jobs are counted in {log.unit}, those that the model learnt from in {model.unit}")
        found = of_waits.held(model, log)
    except GpuctlError as error:
        evidence = f"{folder}: not compared with {db}: {error.message}"
        return Finding("model_drift", Status.WARN, evidence, "name a store with one cluster, that of the model")
    low, high = of_waits.HOLDS
    evidence = f"{folder}: {plural(found.jobs, 'job')} of {db} started since it was trained"
    if found.jobs < of_waits.FEWEST:
        return Finding("model_drift", Status.OK, f"{evidence}, too few to judge (at least {of_waits.FEWEST})")
    evidence += (
        f"; its 80 % interval held {found.followed_pct:.0f} % of their waits ({found.as_saved_pct:.0f} % with the "
        f"levels as saved; {low:.0f} to {high:.0f} expected)"
    )
    if found.fails:
        return Finding("model_drift", Status.WARN, f"{evidence}: out of date", f"{_AGAIN} wait, on newer logs")
    return Finding("model_drift", Status.OK, evidence)


def digest(described: Mapping[str, Any]) -> str:
    """A short name of a list of features and their definitions, in order: 12 digits of a SHA-256."""
    return hashlib.sha256(json.dumps(list(described.items())).encode()).hexdigest()[:12]


def versions(folder: Path, card: Mapping[str, Any]) -> Finding:
    """The finding on what a model was made with: LightGBM reads its own files within one major version."""
    from importlib import metadata

    made = card.get("made_with")
    made = made if isinstance(made, dict) else {}
    have = metadata.version("lightgbm")
    found = str(made.get("lightgbm", "unknown"))[:40]
    evidence = f"{folder}: made with gpuctl {str(card.get('gpuctl', 'unknown'))[:40]}, LightGBM {found}; here {have}"
    if found.partition(".")[0] != have.partition(".")[0]:
        return Finding("model_versions", Status.WARN, evidence, _AGAIN)
    return Finding("model_versions", Status.OK, evidence)
