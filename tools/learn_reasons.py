"""Trains the reader of messages that `gpuctl classify` asks where the tables would guess by a class.

`python tools/learn_reasons.py` writes `gpuctl/joblogs/learned` from the deciding lines of the recordings that authors
may read, the signatures' examples, and `labs/failures/sentences.tsv`. `--check` only trains on all but one fifth of the
tools in turn, and prints how often the model is right on that fifth, by its confidence. Its confidence is measured the
same way, on recorded lines alone, and only on such that a class or nothing is known of.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

sys.path.insert(0, str(Path(__file__).parent.parent))
from gpuctl.joblogs import classified_endings, learned
from gpuctl.joblogs.prefix import prefix
from gpuctl.joblogs.structure.library_areas import library
from gpuctl.joblogs.table import CAUSES, RELEASE, Tier, load
from tests.failure_corpus import Case, cases, judge

SENTENCES = Path(__file__).parent.parent / "labs" / "failures" / "sentences.tsv"
PARTS = ("dev", "fresh", "gpu", "tools")
PENALTY = 2e-4
FOLDS = 5
CONFIDENCES = 12
"""Points of the curve from odds to confidence."""


class Example(NamedTuple):
    """One message with its reason.

    Attributes:
        tool: library or program; all its messages are in one part of a check.
        message: as the reader is given it.
        reasons: the true one, and those that are as right.
        recorded: whether a recorded program printed it.
        weak: whether only a class or nothing is known of it: what the reader is asked.
    """

    tool: str
    message: learned.Message
    reasons: tuple[str, ...]
    recorded: bool
    weak: bool


def examples() -> list[Example]:
    """Collect all messages."""
    found = []
    for signature in load().signatures.values():
        if signature.tier in CAUSES and signature.reason and signature.pattern and signature.tier != Tier.GENERIC:
            for line in signature.examples:
                message = learned.message(line[prefix(line).end :])
                found.append(Example(f"signature {signature.id}", message, (signature.reason,), False, False))
    for number, row in enumerate(SENTENCES.read_text().splitlines()):
        reason, text = row.split("\t")
        found.append(Example(f"sentence {number}", learned.message(text), (reason,), False, False))
    for part in PARTS:
        for case in cases(part):
            if case.reason is not None:
                found += recorded(case)
    return found


def recorded(case: Case) -> list[Example]:
    """Return the deciding messages of a recording: the evidence of a right verdict, and what its last ending says."""
    endings: list[tuple[str, str, str | None, bool]] = []
    asked, read = classified_endings.readings, learned.read

    def listen(placed: classified_endings.PlacedEnding, known: object) -> list[str]:
        endings.append((placed.line, placed.said, placed.ending.frame, not classified_endings.strong(known)))  # type: ignore[arg-type]
        return []

    # what is learned must not depend on what was learned before
    classified_endings.readings = listen  # type: ignore[assignment]
    learned.read = lambda *_: learned.Reading("program_error", 0.0, None)
    try:
        outcome = judge(case, with_facts=True)
    finally:
        classified_endings.readings, learned.read = asked, read
    reasons = (str(case.reason), *case.acceptable)
    said = outcome.verdict.evidence if outcome.verdict.stream != "scheduler" else None
    taken: dict[str, tuple[str | None, bool]] = {}
    for line, text, frame, weak in endings:
        if outcome.right and said is not None and line.startswith(said[:200]):
            taken[text] = (frame, weak)
    if not taken and outcome.right and said:
        taken[said[prefix(said).end :]] = (None, (outcome.verdict.signature or "").startswith("structure-"))
    if not outcome.right and endings:
        _, text, frame, weak = endings[-1]
        taken[text] = (frame, weak)
    made = []
    for text, (frame, weak) in taken.items():
        message = learned.message(text, frame)
        tool = library(frame) or message.library or f"program {case.program.split('.')[0].split(':')[-1]}"
        made.append(Example(f"tool {tool}", message, reasons, True, weak))
    return made


def fit(seen: list[Example], names: list[str], weight_of_others: float = 0.5) -> np.ndarray:
    """Weights (features + 1 x reasons) of a softmax regression with an L2 penalty."""
    rows = [learned.features(one.message) for one in seen]
    data = csr_matrix(
        (
            np.concatenate([values for _, values in rows]),
            np.concatenate([places for places, _ in rows]),
            np.concatenate([[0], np.cumsum([len(places) for places, _ in rows])]),
        ),
        shape=(len(rows), learned.SIZE + 1),
    )
    truth = np.zeros((len(seen), len(names)))
    for row, one in enumerate(seen):
        shares = [1.0] + [0.25] * (len(one.reasons) - 1)
        for reason, share in zip(one.reasons, shares, strict=True):
            if reason in names:
                truth[row, names.index(reason)] += share / sum(shares)
    weight = np.array([1.0 if one.recorded else weight_of_others for one in seen])[:, None]

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        weights = flat.reshape(learned.SIZE + 1, len(names))
        scores = data @ weights
        scores -= scores.max(axis=1, keepdims=True)
        logs = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
        value = -(logs * truth * weight).sum() / len(rows) + PENALTY * (weights**2).sum() / 2
        slope = (np.exp(logs) * truth.sum(axis=1, keepdims=True) - truth) * weight
        return value, (data.T @ slope / len(rows) + PENALTY * weights).ravel()

    start = np.zeros((learned.SIZE + 1) * len(names))
    return minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 60}).x.reshape(-1, len(names))


def unseen(found: list[Example], names: list[str]) -> list[tuple[float, bool, Example, str]]:
    """(odds, right, example, reason read) of each recorded message by a model that has not seen its tool."""
    tools = sorted({one.tool for one in found})
    part = {tool: number % FOLDS for number, tool in enumerate(np.random.default_rng(1).permutation(tools))}
    made = []
    for fold in range(FOLDS):
        weights = fit([one for one in found if not one.recorded or part[one.tool] != fold], names)
        model = learned.Model(tuple(names), weights.astype(np.float32))
        for one in found:
            if one.recorded and part[one.tool] == fold:
                odds = model.likely(one.message)
                best = int(odds.argmax())
                made.append((float(odds[best]), names[best] in one.reasons, one, names[best]))
    return made


def curve(sure: list[tuple[float, bool, Example, str]]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return (odds, share right) by isotonic regression, smoothed by one right and one wrong answer a step."""
    ordered = sorted((odds, right) for odds, right, _, _ in sure)
    size = max(1, len(ordered) // CONFIDENCES)
    blocks = [
        [float(np.mean([o for o, _ in group])), float(sum(r for _, r in group) + 1), float(len(group) + 2)]
        for group in (ordered[at : at + size] for at in range(0, len(ordered), size))
    ]
    pooled: list[list[float]] = []
    for block in blocks:
        pooled.append(block)
        while len(pooled) > 1 and pooled[-2][1] / pooled[-2][2] > pooled[-1][1] / pooled[-1][2]:
            odds, right, total = pooled.pop()
            last = pooled[-1]
            share = total / (total + last[2])
            pooled[-1] = [odds * share + last[0] * (1 - share), last[1] + right, last[2] + total]
    return tuple(round(b[0], 4) for b in pooled), tuple(round(b[1] / b[2], 4) for b in pooled)


def report(sure: list[tuple[float, bool, Example, str]]) -> dict[str, object]:
    """Print and return how often it is right on tools that it has not seen."""
    for least in (0.0, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9):
        hits = [right for odds, right, _, _ in sure if odds >= least]
        if hits:
            print(f"odds of at least {least}: right {sum(hits)} of {len(hits)} ({np.mean(hits):.0%})")
    return {"messages": len(sure), "right_pct": round(100 * float(np.mean([right for _, right, _, _ in sure])), 1)}


def main() -> None:
    """Check, train on everything, save."""
    found = examples()
    names = sorted({one.reasons[0] for one in found})
    print(f"{len(found)} messages, {len(names)} reasons; {Counter(one.recorded for one in found)}")
    every = unseen(found, names)
    weak = [one for one in every if one[2].weak]
    print("all recorded messages, their tools unseen")
    scores = {"all": report(every)}
    print("those of which only a class or nothing is known")
    scores["weak"] = report(weak)
    odds, shares = curve(weak)
    print("confidence by odds", [*zip(odds, shares, strict=True)])
    if "--wrong" in sys.argv:
        for sure, right, one, said in sorted(weak, key=lambda one: -one[0]):
            if not right:
                print(f"{sure:.2f} said {said}, is {one.reasons}: {one.message}")
    if "--check" in sys.argv:
        return
    weights = fit(found, names)
    learned.Model(tuple(names), weights.astype(np.float32), odds, shares).save(
        learned.FOLDER,
        {"messages": len(found), "held_out": scores, "release": RELEASE, "features": learned.FEATURES},
    )
    print(json.dumps(scores))


if __name__ == "__main__":
    main()
