"""How often `gpuctl classify` is right on the recorded corpus, and how fast it reads.

python benchmarks/failures.py [dev|heldout|fresh|gpu|tools|another_hand] [--wrong] [--speed]
"""

from __future__ import annotations

import io
import random
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from gpuctl.joblogs.scan import Scanner
from gpuctl.joblogs.table import load
from tests.failure_corpus import HIGH, Outcome, cases, confusion, judge, scanner, wrong_category


def accuracy(split: str, *, with_facts: bool, show_wrong: bool) -> None:
    """Print accuracy by reason, and the confusion of what was not right."""
    outcomes = [judge(case, with_facts=with_facts) for case in cases(split)]
    failing = [one for one in outcomes if one.case.reason is not None]
    fine = [one for one in outcomes if one.case.reason is None]
    print(f"\n== {split}, {'with exit code and state' if with_facts else 'from the logs alone'}")
    right = Counter(str(one.case.reason) for one in failing if one.right)
    for reason, number in sorted(Counter(str(one.case.reason) for one in failing).items()):
        print(f"{reason:24} {right[reason]:3} of {number:3}")
    share = sum(right.values()) / len(failing)
    print(f"{'all failures':24} {sum(right.values()):3} of {len(failing):3} = {share:.1%}")
    print(f"{'successes left alone':24} {sum(one.right for one in fine):3} of {len(fine):3}")
    table = scanner().table
    print(f"wrong category with confidence >= {HIGH}: {sum(wrong_category(one, table) for one in outcomes)}")
    print(*(f"  true {true}, said {said}: {n}" for true, said, n in confusion(outcomes)), sep="\n")
    calibration(outcomes)
    if show_wrong:
        for one in outcomes:
            if not one.right:
                said = one.verdict
                print(f"- {one.case.name}: true {one.case.reason}, said {said.reason} {said.confidence}")
                print(f"    by {said.signature}: {said.evidence}")


def calibration(outcomes: list[Outcome]) -> None:
    """Print how often verdicts of one confidence are right."""
    groups: dict[float, list[bool]] = {}
    for one in outcomes:
        if one.verdict.reason is not None:
            groups.setdefault(one.verdict.confidence, []).append(one.right)
    for confidence, hits in sorted(groups.items(), reverse=True):
        print(f"  confidence {confidence:.3f}: right {sum(hits)} of {len(hits)}")


def speed(megabytes: int = 50) -> None:
    """Print how fast logs of several kinds are read, on one core."""
    random.seed(1)
    begun = time.process_time()
    reader = Scanner(load())
    print(f"\n{len(reader.table.signatures)} signatures compiled in {time.process_time() - begun:.2f} s")
    for name, line in _LINES.items():
        block = b"".join(line(number) for number in range(20_000))
        data = block * (megabytes * 1_000_000 // len(block) + 1)
        begun = time.process_time()
        found = reader.scan(io.BytesIO(data))
        took = time.process_time() - begun
        rate = len(data) / took / 1e6
        print(f"{name:28} {rate:7.1f} MB/s = {rate / (1000 / 60):5.1f} x 1 GB a minute, {found.steps} steps")


_WORDS = b"loading batch shard worker tensor gradient queue rank node cache model layer weight token sample".split()


def _prose(_number: int) -> bytes:
    return b" ".join(random.choices(_WORDS, k=random.randrange(4, 20))) + b" %f\n" % random.random()


def _training(number: int) -> bytes:
    return b"2026-11-22 01:00:00,123 - INFO - epoch %d step %d loss %.4f lr 1e-4\n" % (
        number // 1000,
        number,
        random.random(),
    )


_LINES = {
    "ordinary words": _prose,
    "all lines of progress": _training,
    "one in ten of progress": lambda n: _training(n) if n % 10 == 0 else _prose(n),
    "a bar, no line ends": lambda n: b"\r %d%%|####      | %d/20000 [00:10<00:20, 9.9it/s]" % (n // 200, n),
    "all lines errors": lambda n: b"RuntimeError: CUDA out of memory. Tried to allocate %d GiB\n" % n,
    "all tracebacks": lambda n: (
        b'Traceback (most recent call last):\n  File "/jobs/run.py", line %d, in go\n    go()\nwidgets.Stuck: belt %d\n'
        % (n, n)
    ),
    "all JSON errors": lambda n: (
        b'{"level": "error", "event": "row %d", "exc_type": "Stuck", "exc_value": "belt"}\n' % n
    ),
    "every line of a rank": lambda n: b"[rank%d]: step went by, number %d\n" % (n % 8, n),
    "one line, no end": lambda _: b"x" * 100,
    "bytes of no text": lambda _: random.randbytes(100),
}

if __name__ == "__main__":
    arguments = sys.argv[1:]
    for chosen in [a for a in arguments if not a.startswith("-")] or ["dev", "heldout", "fresh", "gpu"]:
        for with_facts in (True, False):
            accuracy(chosen, with_facts=with_facts, show_wrong="--wrong" in arguments and chosen != "heldout")
    if "--speed" in arguments:
        speed()
