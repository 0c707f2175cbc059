"""Train the reader of last words: `gpuctl/joblogs/learned`, a linear model over n-grams of characters.

python tools/learn_reasons.py [--check]

It learns from the lines that the signature tables give as examples, and from the deciding lines of the recordings for
development. `--check` only trains on all but one fifth of the programs in turn, and prints how often the model is right
on that fifth, by its odds.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

sys.path.insert(0, str(Path(__file__).parent.parent))
from gpuctl.joblogs import learned
from gpuctl.joblogs.table import CAUSES, RELEASE, load
from tests.failure_corpus import cases, judge

PENALTY = 3e-4


def examples() -> list[tuple[str, str, str]]:
    """(family, line, reason): a family is what must not be in both parts of a check."""
    found = []
    for signature in load().signatures.values():
        if signature.tier in CAUSES and signature.reason and signature.pattern:
            found += [(f"signature {signature.id}", line, signature.reason) for line in signature.examples]
    for case in cases("dev"):
        if case.reason is not None:
            verdict = judge(case, with_facts=True)
            if verdict.right and verdict.verdict.evidence and verdict.verdict.stream != "scheduler":
                found.append((f"program {case.program}", verdict.verdict.evidence, case.reason))
    return found


def fit(lines: list[str], reasons: list[str], names: list[str]) -> np.ndarray:
    """Weights (features + 1 x reasons) of a softmax regression with an L2 penalty."""
    rows = [learned.features(line) for line in lines]
    data = csr_matrix(
        (
            np.concatenate([values for _, values in rows]),
            np.concatenate([places for places, _ in rows]),
            np.concatenate([[0], np.cumsum([len(places) for places, _ in rows])]),
        ),
        shape=(len(rows), learned.SIZE + 1),
    )
    truth = np.eye(len(names))[[names.index(reason) for reason in reasons]]

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        weights = flat.reshape(learned.SIZE + 1, len(names))
        scores = data @ weights
        scores -= scores.max(axis=1, keepdims=True)
        odds = np.exp(scores)
        odds /= odds.sum(axis=1, keepdims=True)
        value = -np.log((odds * truth).sum(axis=1)).mean() + PENALTY * (weights**2).sum() / 2
        return value, (data.T @ (odds - truth) / len(rows) + PENALTY * weights).ravel()

    start = np.zeros((learned.SIZE + 1) * len(names))
    return minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 150}).x.reshape(-1, len(names))


def check(found: list[tuple[str, str, str]], names: list[str]) -> dict[str, float]:
    """Right answers of five parts by family, each learned without it, and of the most frequent constant."""
    families = sorted({family for family, _, _ in found})
    part = {family: number % 5 for number, family in enumerate(np.random.default_rng(1).permutation(families))}
    sure: list[tuple[float, bool]] = []
    for fold in range(5):
        seen = [one for one in found if part[one[0]] != fold]
        weights = fit([line for _, line, _ in seen], [reason for _, _, reason in seen], names)
        model = learned.Model(tuple(names), weights.astype(np.float32))
        for family, line, reason in found:
            if part[family] == fold:
                reason_found, odds = model.read(line)
                sure.append((odds, reason_found == reason))
    for least in (0.0, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9):
        hits = [right for odds, right in sure if odds >= least]
        if hits:
            print(f"odds of at least {least}: right {sum(hits)} of {len(hits)} ({np.mean(hits):.0%})")
    return {"lines": len(sure), "right_pct": round(100 * float(np.mean([right for _, right in sure])), 1)}


def main() -> None:
    """Check, train on everything, save."""
    found = examples()
    names = sorted({reason for _, _, reason in found})
    print(f"{len(found)} lines, {len(names)} reasons; most frequent {Counter(r for _, _, r in found).most_common(3)}")
    scores = check(found, names)
    if "--check" in sys.argv:
        return
    weights = fit([line for _, line, _ in found], [reason for _, _, reason in found], names)
    learned.Model(tuple(names), weights.astype(np.float32)).save(
        learned.FOLDER, {"lines": len(found), "held_out": scores, "release": RELEASE, "features": learned.FEATURES}
    )
    print(json.dumps(scores))


if __name__ == "__main__":
    main()
