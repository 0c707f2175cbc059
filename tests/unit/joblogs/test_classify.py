"""The rule that picks the cause: tiers, what was survived, and what the scheduler says."""

from __future__ import annotations

import io

import pytest

from gpuctl.core.states import State
from gpuctl.joblogs.classify import AT_END, SURVIVED, classify
from gpuctl.joblogs.evidence import Facts, Match
from gpuctl.joblogs.table import RELEASE, Reason, Signature, Table, Tier
from tests.signatures import scanner, table

_REASONS = {name: Reason(name, name, ("user",)) for name in ("disk", "bug", "bug2", "peer", "trace")}
TABLE = Table(
    RELEASE,
    {**table().reasons, **_REASONS},
    {
        s.id: s
        for s in (
            Signature("root", Tier.ROOT, "x", "disk", category="infrastructure"),
            Signature("error", Tier.ERROR, "x", "bug"),
            Signature("error2", Tier.ERROR, "x", "bug2"),
            Signature("symptom", Tier.SYMPTOM, "x", "peer"),
            Signature("generic", Tier.GENERIC, "x", "trace"),
            Signature("success", Tier.SUCCESS, "x"),
        )
    },
)
FAILED = Facts(state=State.FAILED, exit_code=1)


def line(signature: str | None, line_no: int, *, after: int = 0, work: bool = False, ts: float | None = None) -> Match:
    return Match(signature, line_no, f"{signature} on {line_no}", ordinary_after=after, work_after=work, ts=ts)


def test_root_causes_precede_errors_symptoms_and_generic_signs() -> None:
    matches = [line("generic", 1), line("symptom", 2), line("error", 3), line("root", 4)]
    for least in range(4):
        verdict = classify(matches[: 4 - least], TABLE, FAILED)
        assert verdict.line_no == 4 - least
    verdict = classify(matches, TABLE, FAILED)
    assert (verdict.reason, verdict.category, verdict.evidence) == ("disk", "infrastructure", "root on 4")
    assert verdict.others == ("bug", "peer", "trace")


def test_of_equals_the_earliest_is_the_cause() -> None:
    assert classify([line("error2", 9), line("error", 3)], TABLE, FAILED).reason == "bug"


def test_stamps_decide_between_logs_where_all_lines_have_them() -> None:
    early, late = line("error2", 900, ts=10.0), line("error", 3, ts=20.0)
    assert classify([late, early], TABLE, FAILED).reason == "bug2"
    assert classify([late, early._replace(ts=None)], TABLE, FAILED).reason == "bug"


def test_what_was_survived_is_not_the_cause() -> None:
    survived = line("root", 1, work=True)
    assert classify([survived, line("error", 50)], TABLE, FAILED).reason == "bug"
    assert classify([line("root", 1, after=SURVIVED + 1), line("error", 50)], TABLE, FAILED).reason == "bug"
    assert classify([line("root", 1, after=SURVIVED), line("error", 50)], TABLE, FAILED).reason == "disk"
    # nothing else is left: it may be, but that is far from sure
    alone = classify([survived], TABLE, FAILED)
    assert alone.reason == "disk"
    assert alone.confidence < classify([line("root", 1)], TABLE, FAILED).confidence


def test_several_reasons_of_one_tier_make_it_less_sure() -> None:
    one, two = [line("error", 3)], [line("error", 3), line("error2", 4)]
    assert classify(two, TABLE, FAILED).confidence < classify(one, TABLE, FAILED).confidence


@pytest.mark.parametrize("facts", [Facts(state=State.COMPLETED), Facts(exit_code=0), Facts(state=State.RUNNING)])
def test_a_successful_attempt_did_not_fail_whatever_it_printed(facts: Facts) -> None:
    verdict = classify([line("root", 1)], TABLE, facts)
    assert (verdict.failed, verdict.reason) == (False, None)


def test_without_the_schedulers_word_only_an_error_at_the_end_is_a_failure() -> None:
    assert not classify([], TABLE).failed
    assert not classify([line(None, 5)], TABLE).failed
    assert not classify([line("error", 1, work=True)], TABLE).failed
    assert not classify([line("error", 1, after=AT_END + 1)], TABLE).failed
    perhaps = classify([line("error", 1, after=AT_END)], TABLE)
    assert (perhaps.failed, perhaps.reason) == (None, "bug")
    # an exception that nobody catches is the last that a process prints
    handled = classify([line("error", 1, after=1)._replace(text="[rank1]: my.OwnError: no")], TABLE)
    assert (handled.failed, handled.reason) == (None, "bug")
    raised = classify([line("error", 1)._replace(text="[rank1]: my.OwnError: no")], TABLE)
    assert (raised.failed, raised.reason) == (True, "bug")
    assert perhaps.confidence < raised.confidence
    # the launcher's last words show that it died: then an earlier line may be why
    assert classify([line("error", 1, after=20), line("generic", 30)], TABLE).reason == "bug"


def test_the_programs_word_that_it_ended_well_counts_at_the_end_of_any_log() -> None:
    error = line("root", 4)._replace(stream="stderr")
    assert not classify([error, line("success", 9)._replace(stream="stdout")], TABLE).failed
    assert classify([error, line("success", 9, after=AT_END + 1)], TABLE).failed is not False
    assert classify([error, line("success", 9)], TABLE, FAILED).failed


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        (Facts(state=State.TIMEOUT), "time_limit"),
        (Facts(state=State.OUT_OF_MEMORY, exit_signal=9), "cpu_out_of_memory"),
        (Facts(state=State.NODE_FAIL), "node_failure"),
        (Facts(state=State.PREEMPTED), "job_preempted"),
        (Facts(state=State.KILLED), "cancelled"),
        (Facts(state=State.FAILED, exit_signal=11), "invalid_memory_access"),
        (Facts(state=State.FAILED, exit_code=139), "invalid_memory_access"),
        (Facts(state=State.FAILED, exit_code=134), "core_dump"),
        (Facts(state=State.FAILED, exit_code=137), "process_killed"),
        (Facts(state=State.FAILED, exit_code=127), "command_not_found"),
        (Facts(state=State.FAILED, exit_code=126), "permission_error"),
        (Facts(state=State.FAILED, exit_code=1), "no_signature"),
        (Facts(exit_code=1), "no_signature"),
    ],
)
def test_the_schedulers_word_alone(facts: Facts, reason: str) -> None:
    verdict = classify([], TABLE, facts)
    assert (verdict.failed, verdict.reason) == (True, reason)
    assert verdict.category == TABLE.category(reason)


def test_the_scheduler_knows_better_than_errors_but_a_root_cause_in_the_log_knows_why() -> None:
    timeout = Facts(state=State.TIMEOUT, texts=("DUE TO TIME LIMIT",))
    by_scheduler = classify([line("error", 3)], TABLE, timeout)
    assert (by_scheduler.reason, by_scheduler.stream, by_scheduler.others) == ("time_limit", "scheduler", ("bug",))
    assert by_scheduler.evidence == "state timeout; DUE TO TIME LIMIT"
    assert classify([line("root", 3)], TABLE, timeout).reason == "disk"


def test_a_signal_says_more_than_a_traceback_and_less_than_an_error() -> None:
    segfault = Facts(state=State.FAILED, exit_signal=11)
    assert classify([line("generic", 3)], TABLE, segfault).reason == "invalid_memory_access"
    assert classify([line("error", 3)], TABLE, segfault).reason == "bug"


def test_a_crash_of_native_code_is_not_blamed_on_an_exception_that_was_caught() -> None:
    caught = line("root", 3, after=1)._replace(text="FileNotFoundError: cache.npy")
    for facts in (Facts(state=State.FAILED, exit_signal=6), Facts(exit_code=134)):
        assert classify([caught], TABLE, facts).reason == "core_dump"
        assert classify([caught._replace(ordinary_after=0)], TABLE, facts).reason == "disk"
        assert classify([caught._replace(text="terminate called after throwing it")], TABLE, facts).reason == "disk"
    assert classify([caught], TABLE, FAILED).reason == "disk"


def test_without_a_signature_the_most_informative_line_is_the_evidence() -> None:
    lines = [Match(None, 5, "the widget could not be frobbed"), Match(None, 7, "bye")]
    verdict = classify(lines, TABLE, FAILED)
    assert (verdict.reason, verdict.category, verdict.confidence) == ("no_signature", None, 0.0)
    assert (verdict.line_no, verdict.evidence) == (5, "the widget could not be frobbed")
    assert classify(lines[1:], TABLE, FAILED).line_no == 7


def test_a_cluster_managers_word_that_it_ended_the_job_is_enough_without_state_or_exit_code() -> None:
    every = table()
    final = [signature for signature in every.signatures.values() if signature.final]
    assert {"pbs-walltime", "slurm-time-limit", "lsf-runtime"} <= {signature.id for signature in final}
    for signature in final:
        ended = Match(signature.id, 1, signature.examples[0])
        for facts in (None, Facts(), Facts(state=State.UNKNOWN), Facts(texts=("",))):
            verdict = classify([ended], every, facts)
            assert (verdict.failed, verdict.reason) == (True, signature.reason)
        # a requeued job appends to its log: the end of an earlier attempt is not its own
        assert classify([ended._replace(ordinary_after=AT_END + 1)], every).failed is False


@pytest.mark.parametrize(
    ("log", "failed", "reason"),
    [
        # a bar that a dying program draws once more is no progress after its exception
        (
            'Traceback (most recent call last):\n  File "a.py", line 2, in <module>\n    f()\n'
            "RuntimeError: CUDA out of memory. Tried to allocate 2 GiB\n\r 10%|#  | 10/100 [00:01<00:02, 9.9it/s]\n",
            True,
            "gpu_out_of_memory",
        ),
        # unmarked last words, as long as they are no summary of what went well
        ("batch 64 on gpu 0\nCUDA out of memory\n", None, "gpu_out_of_memory"),
        ("batch 512: CUDA out of memory, halving\nbatch 256 fits\n", False, None),
        ("shard 0: ok\nerrors: 0, failures: 0, missing: 0\n", False, None),
        # it is not said that it failed
        ('fatal: [gpu1]: FAILED! => {"rc": 1}\n...ignoring\n\nTASK [next]\nok: [gpu1]\n', None, "program_error"),
    ],
)
def test_how_a_log_ends_without_an_exit_code(log: str, failed: bool | None, reason: str | None) -> None:
    scan = scanner().scan(io.BytesIO(log.encode()))
    verdict = classify([*scan.matches, *scan.telling], scanner().table)
    assert (verdict.failed, verdict.reason) == (failed, reason)
