from __future__ import annotations

import string
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuctl.core.errors import UsageError
from gpuctl.ingest.joboutput.patterns import BRACED, SLURM, Log, Pattern


@pytest.mark.parametrize(
    ("pattern", "path", "log"),
    [
        ("{job}/{attempt}/{stream}", "12/0/stderr", Log("12", 0, "stderr")),
        ("{job}/{attempt}/{stream}", "application_1_0001/3/STDOUT", Log("application_1_0001", 3, "stdout")),
        ("{job}/{attempt+1}.{stream}", "j/1.err", Log("j", 0, "stderr")),
        ("{job}/{attempt}/{stream}", "a/b/0/stderr", None),
        ("{job}/{attempt}/{stream}", "12/x/stderr", None),
        ("{job}/{attempt}/{stream}", "12/-1/stderr", None),
        ("logs/{job}.log", "logs/12.log", Log("12", None, "output")),
        ("logs/{job}.log", "logs/.log", None),
        ("logs/{job}.log", "other/12.log", None),
        ("{job}.{stream}", "41.pbs.site.err", Log("41.pbs.site", None, "stderr")),
        ("{name}-{job}.out", "my-run-7.out", Log("7", None, "output")),
        ("{job}-{name}.out", "7-my-run.out", Log("7", None, "output")),
        ("{*}_{job}.stderr.txt", "x_7.stderr.txt", Log("7", None, "stderr")),
        ("*{job}*", "7", Log("7", None, "output")),
        ("{job}/{container}/{stream}", "a/c_1/stdout", Log("a", None, "stdout:c_1")),
        ("{job}/rank{rank}.err", "a/rank03.err", Log("a", None, "stderr:3", 3)),
        ("{name}{rank}-{job}.log", "worker12-5.log", Log("5", None, "output:12", 12)),
        ("{job}/{job}.{attempt}.out", "x1/x1.3.out", Log("x1", 3, "output")),
        ("{job}/{job}.{attempt}.out", "x1/x2.3.out", None),
        ("{{{job}}}", "{a}", Log("a", None, "output")),
        # Slurm's own, as its manual of sbatch explains them
        ("slurm-%j.out", "slurm-128.out", Log("128", None, "output")),
        ("slurm-%j.out", "slurm-128_3.out", None),
        ("slurm-%A_%a.out", "slurm-128_3.out", Log("128_3", None, "output")),
        ("slurm-%A_%4a.out", "slurm-128_0003.out", Log("128_3", None, "output")),
        ("%A_%a.out", "5_4294967294.out", Log("5", None, "output")),
        ("job%j-%2t.out", "job128-00.out", Log("128", None, "output:0", 0)),
        ("job%j-%2t.out", "job128-0.out", None),
        ("job%j-%2t.out", "job128-123.out", Log("128", None, "output:123", 123)),
        ("job%j-%2t.out", "job128-012.out", None),
        ("%J.%t.out", "128.0.1.out", Log("128", None, "output:step 0:1", 1)),
        ("%x-%u-%j-%N.err", "my-job-bob-9-node-1.err", Log("9", None, "stderr:node-1")),
        ("%j/%n.%s.out", "9/0.batch.out", Log("9", None, "output:step batch:node 0")),
        ("100%%/%j", "100%/9", Log("9", None, "output")),
        ("%j5", "125", Log("12", None, "output")),
        ("./%j.out.gz", "9.out", Log("9", None, "output")),
    ],
)
def test_says_whose_log_a_path_is(pattern: str, path: str, log: Log | None) -> None:
    assert Pattern(pattern).match(path) == log


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("", "relative"),
        ("/var/log/{job}", "relative"),
        ("../{job}", "relative"),
        ("logs//{job}", "relative"),
        ("logs/*.out", "does not contain the job's id"),
        ("{job}-%j", "two forms"),
        ("{attempt}/{attempt+1}/{job}", "two forms"),
        ("{job}/{user}", r"unknown placeholder \{user\}"),
        ("%j-%q", "unknown placeholder %q"),
        ("%j-%", "stands for nothing"),
        ("{job", "stands for nothing"),
        ("**/{job}", "stands for nothing"),
        ("{job}-{job}", "twice"),
        ("{job}" + "a*" * 200, "over 100"),
    ],
)
def test_states_what_is_wrong_with_a_pattern(pattern: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        Pattern(pattern)


_LITERAL = st.text(string.ascii_letters + "-_. +=,()[]^$|\\?äß", min_size=1, max_size=8)
_WORDS = [f"{{{name}}}" for name in BRACED if name != "attempt+1"] + [f"%{letter}" for letter in SLURM] + ["%3t", "*"]
# text stands between the placeholders: of two numbers side by side nobody could say where one ends
_PIECE = st.lists(st.tuples(_LITERAL, st.sampled_from(_WORDS)).map("".join), min_size=1, max_size=4).map("".join)


@st.composite
def _patterns(draw: st.DrawFn) -> Pattern:
    pieces = draw(st.lists(_PIECE, min_size=1, max_size=4))
    pieces.insert(draw(st.integers(0, len(pieces))), draw(st.sampled_from(["{job}", "%j", "%A_%a", "run-%J"])))
    try:
        return Pattern("/".join(pieces))
    except UsageError:
        return Pattern("{job}/" + draw(_LITERAL) + "{rank}x")


@given(_patterns(), st.data())
def test_matches_what_it_makes(pattern: Pattern, data: st.DataObject) -> None:
    numbers = {"id", "array", "task", "attempt", "rank", "node"}
    digits, letters = st.integers(0, 99_999).map(str), st.text(string.ascii_letters, min_size=1, max_size=9)
    values = {name: data.draw(digits if name in numbers else letters) for name in pattern.names}
    values["*"] = data.draw(st.text(string.ascii_letters + "-._", max_size=9))
    assert pattern.match(pattern.path(values)) is not None


@given(_patterns(), st.text(string.printable, max_size=60))
def test_takes_any_path(pattern: Pattern, path: str) -> None:
    log = pattern.match(path)
    assert log is None or log.job


def test_a_simple_pattern_gives_back_every_value() -> None:
    pattern = Pattern("{name}/{job}.{attempt}/{container}-{rank}.{stream}")
    values = {"*": "x.y", "job": "a.b_c", "attempt": "4", "container": "c-1", "rank": "17", "stream": "err"}
    assert pattern.match(pattern.path(values)) == Log("a.b_c", 4, "stderr:c-1:17", 17)


@pytest.mark.parametrize("pattern", ["*a" * 40 + "{job}!", "{name}a" * 40 + "{job}", "{job}" + "*1*2" * 20 + "%t!"])
def test_no_path_takes_long(pattern: str) -> None:
    begun = time.process_time()
    for path in ("a" * 4000, "1" * 4000, "12" * 2000 + "?"):
        Pattern(pattern).match(path)
    assert time.process_time() - begun < 2.0
