"""How often `gpuctl lessons` is right on made-up traces in which the truth is planted (tools/make_lessons.py).

    python benchmarks/lessons.py --seeds 1..50           # planted: is the truth within the intervals?
    python benchmarks/lessons.py --seeds 1..50 --null    # nothing planted: where is a saving claimed?

Seeds 1 to 50 are for development; 1001 to 1100 were measured once, after that (docs/how-to/lessons.md).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter, defaultdict
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.ingest.pipeline.load import ingest
from gpuctl.lessons import locality, sharing
from gpuctl.lessons.lesson_input import Case, open_case
from gpuctl.lessons.slowdowns import measure
from gpuctl.lessons.utilization import read
from gpuctl.store.database import Store

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
from make_lessons import Planted, make

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpuctl.lessons.finding import Estimate


def planted(seed: int, *, null: bool) -> Planted:
    """What is planted under a seed."""
    rng = np.random.default_rng([seed, 3])
    slowdown, interference = float(rng.uniform(0.5, 0.95)), float(rng.uniform(0.75, 0.98))
    return Planted(seed=seed, slowdown=1.0 if null else slowdown, interference=1.0 if null else interference)


@contextmanager
def case_of(truth: Planted) -> Iterator[Case]:
    """The trace with that truth, read."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make(folder / "log", truth)
        ingest([folder / "log"], folder / "trace.duckdb")
        with Store(folder / "trace.duckdb") as store:
            yield open_case(store, None, {}, lambda _text: None, processes=1)


def estimates(case: Case, truth: Planted) -> dict[str, tuple[Estimate, float]]:
    """What is measured, with the truth of each."""
    used = read(case)
    if used is None:
        return {}
    found = measure(used)
    made = {"slowdown": (found.all_sizes[0].estimate, truth.slowdown)}
    made |= {f"slowdown, {size} GPUs": (ratio.estimate, truth.slowdown)
             for (size, level), ratio in found.by_size.items() if level == 1}  # fmt: skip
    return {**made, "interference": (found.shared.estimate, truth.interference)}


def main() -> None:
    """See the top of this file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", default="1..50")
    parser.add_argument("--null", action="store_true")
    given = parser.parse_args()
    first, _, last = given.seeds.partition("..")
    seeds = range(int(first), int(last or first) + 1)
    inside, off, missing = Counter[str](), defaultdict[str, list[float]](list), Counter[str]()
    claims, claimed = Counter[str](), 0
    spent = 0.0
    for seed in seeds:
        truth = planted(seed, null=given.null)
        with case_of(truth) as case:
            begin = time.process_time()
            for name, (estimate, value) in estimates(case, truth).items():
                if estimate.value is None or estimate.low is None or estimate.high is None:
                    missing[name] += 1
                    continue
                inside[name] += estimate.low <= value <= estimate.high
                off[name].append(estimate.value / value - 1)
            spent += time.process_time() - begin
            if given.null:
                answers = [*locality.learn(case).answers, *sharing.learn(case).answers]
                wrong = [
                    f"{a.lesson}: {a.rule}".partition("; over all")[0] for a in answers if a.gpu_hours.shown == "saves"
                ]
                claims.update(wrong)
                claimed += bool(wrong)
    print(f"{len(seeds)} traces, {spent / len(seeds):.2f} s of CPU to measure one")
    for name, values in off.items():
        print(f"{name:24} within its 90 % interval: {inside[name]:3} of {len(values):3}; mean error "
              f"{100 * np.mean(values):+.1f} %; no interval: {missing[name]}")  # fmt: skip
    if given.null:
        print(f"a saving of GPU-hours is claimed on {claimed} of {len(seeds)} traces: {dict(claims)}")


if __name__ == "__main__":
    main()
