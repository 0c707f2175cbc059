"""What a filter's options mean, and what is said of it."""

from __future__ import annotations

import pytest

from gpuctl.core.errors import UsageError
from gpuctl.core.job_filter import EVERY_JOB, JobFilter, parse


def test_names_repeat_or_have_commas_between_them() -> None:
    found = parse(user=["ann, bob", "ann"], queue=["q"], state=["failed,killed"])
    assert found == JobFilter(user=("ann", "bob"), queue=("q",), state=("failed", "killed"))
    assert found
    assert not EVERY_JOB
    assert not parse()


def test_a_comma_in_a_name_has_a_backslash_before_it() -> None:
    found = parse(user=["ann\\,bob,DOMAIN\\carl"])
    assert found.user == ("ann,bob", "DOMAIN\\carl")
    with pytest.raises(UsageError, match="--user ann: no job has this user") as refused:
        parse(user=["ann,bob"]).check({"user": ["ann,bob", "carl"], "queue": [], "account": []})
    assert refused.value.hint == "put a backslash before a comma that is part of a name: --user 'ann\\,bob'"


@pytest.mark.parametrize(
    ("text", "bounds"),
    [("4", (4, 4)), ("4..8", (4, 8)), ("..1", (0, 1)), ("8..", (8, float("inf"))), ("0.5", (0.5, 0.5))],
)
def test_gpus(text: str, bounds: tuple[float, float]) -> None:
    assert parse(gpus=text).gpus == bounds


@pytest.mark.parametrize("text", ["", "..", "8..4", "four", "-1", "nan", "1..nan", "inf"])
def test_no_gpus(text: str) -> None:
    with pytest.raises(UsageError, match=f"--gpus {text}: expected GPUs"):
        parse(gpus=text)


def test_a_state_that_there_is_not() -> None:
    with pytest.raises(UsageError, match="no such state") as found:
        parse(state=["complete"])
    assert found.value.hint == "did you mean completed?"


def test_it_is_printed_as_given_and_records_its_names() -> None:
    told = parse(user=["ann"], account=["big lab"], gpus="..8", since="2017-10-02").description(3, 1200)
    assert told == "--user ann --account 'big lab' --gpus ..8 --since 2017-10-02 matches 3 of 1,200 jobs"
    assert told.replaced(lambda kind, _: kind).startswith("--user user --account 'account' ")


def test_a_name_that_no_job_has() -> None:
    with pytest.raises(UsageError, match="--user anne: no job has this user") as found:
        parse(user=["anne"]).check({"user": ["ann", "bob"], "queue": [], "account": []})
    assert found.value.hint == "did you mean ann?"
