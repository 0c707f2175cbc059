from __future__ import annotations

import time

import pytest
from ClusterShell.NodeSet import NodeSet, NodeSetParseError
from hypothesis import given
from hypothesis import strategies as st

from gpuctl.slurm.hostlist import count, expand


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("vm", ["vm"]),
        ("gpu[001-004,007],c1-[2-3]", ["gpu001", "gpu002", "gpu003", "gpu004", "gpu007", "c1-2", "c1-3"]),
        ("n[08-10]", ["n08", "n09", "n10"]),
        ("n[98-101]", ["n98", "n99", "n100", "n101"]),
        ("r[1-2]n[1-2]-ib", ["r1n1-ib", "r1n2-ib", "r2n1-ib", "r2n2-ib"]),
        ("a,b,a", ["a", "b"]),
        ("[1-2]", ["1", "2"]),
        *((none, []) for none in ("", "None assigned", "(null)", " None assigned ", "N/A", "None", "Unknown")),
    ],
)
def test_host_lists(text: str, names: list[str]) -> None:
    assert expand(text) == names


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("n[1-3", "not closed"),
        ("n1]", "do not match"),
        ("n[[1-2]]", "do not match"),
        ("n[]", "no number"),
        ("n[1-]", "no number"),
        ("n[a-b]", "no number"),
        ("n[1,,2]", "no number"),
        ("n[3-1]", "backwards"),
        ("a,,b", "no host name"),
        ("a b", "no host name"),
        (",", "no host name"),
        ("n[१-२]", "no number"),
    ],
)
def test_invalid_host_lists(text: str, why: str) -> None:
    for read in (expand, count):
        with pytest.raises(ValueError, match=why):
            read(text)


@pytest.mark.parametrize(
    "text",
    [
        "n[1-999999999999]",
        "n[1-99999999999999999999999999999999]",
        "n[" + "9" * 100_000 + "]",
        "n[0-" + "9" * 5000 + "]",
        "r[1-300]n[1-300]",
        "a[1-40000],b[1-40000]",
        "n" + "[1-9]" * 40,
    ],
)
def test_lists_without_end_are_refused_before_they_are_made(text: str) -> None:
    started = time.thread_time()  # what other processes do meanwhile does not count
    with pytest.raises(ValueError, match=r"more than 65536|no number"):
        expand(text)
    assert time.thread_time() - started < 0.5


def test_the_limit_counts_names() -> None:
    assert len(expand("n[1-10]", limit=10)) == count("n[1-10]", limit=10) == 10
    with pytest.raises(ValueError, match="more than 9 names"):
        expand("n[1-10]", limit=9)


_numbers = st.tuples(st.integers(0, 60), st.integers(0, 12), st.sampled_from([1, 2, 3])).map(
    lambda t: f"{t[0]:0{t[2]}d}" if t[1] == 0 else f"{t[0]:0{t[2]}d}-{t[0] + t[1]:0{t[2]}d}"
)
_group = st.lists(_numbers, min_size=1, max_size=3).map(lambda parts: f"[{','.join(parts)}]")
_prefix = st.sampled_from(["n", "gpu", "c1-", "r"])
_name = st.one_of(
    st.tuples(_prefix, _group).map("".join),
    st.tuples(_prefix, _group, st.sampled_from(["-", "x"]), _group).map("".join),
    _prefix.map(lambda p: f"{p}7"),
)


@given(st.lists(_name, min_size=1, max_size=4).map(",".join))
def test_names_are_those_of_clustershell(text: str) -> None:
    try:
        theirs = set(NodeSet(text))
    except NodeSetParseError:
        # it wants both ends of a range as wide as each other (n[9-010], n[08-9]); Slurm pads to the width of the first
        expand(text)
        return
    names = expand(text)
    assert set(names) == theirs
    assert len(names) == len(theirs)


@given(st.text(alphabet="n1230,-[] ", max_size=30))
def test_any_text_gives_names_or_an_error(text: str) -> None:
    try:
        names = expand(text)
    except ValueError:
        return
    assert len(set(names)) == len(names) <= count(text)
    assert all(name and not set(name) & set("[], ") for name in names)
