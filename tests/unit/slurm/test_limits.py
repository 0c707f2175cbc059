"""Limits of QOS and associations: what sacctmgr prints of them, and what an association has from those above it."""

from __future__ import annotations

import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuctl.core.errors import InputError
from gpuctl.slurm import accounts, unmodelled
from gpuctl.slurm.associations import USE_PARENT, Association
from gpuctl.slurm.limits import KNOWN, NO_LIMITS, Limits, limits_of


def _dump(text: str) -> dict[tuple[str, str | None], Association]:
    rows = accounts.read_dump(io.BytesIO(text.encode()))
    return {(row.account, row.user): row for row in rows}


QOS = """Name|Priority|GraceTime|Preempt|PreemptExemptTime|PreemptMode|Flags|UsageThres|UsageFactor|GrpTRES|\
GrpTRESMins|GrpJobs|GrpSubmit|GrpWall|MaxTRES|MaxTRESPerNode|MaxWall|MaxTRESPU|MaxJobsPU|MaxSubmitPU|MaxTRESPA|MaxJobsPA|\
MaxSubmitPA|MinTRES
normal|0|00:00:00|||cluster|||1.000000|||||||||||||||
high|50|00:02:30|low,normal|00:10:00|cancel|DenyOnLimit,NoReserve,NoDecay||0.5|gres/gpu=8,cpu=64|gres/gpu=1000|3|9|\
1-00:00:00|mem=200G,node=2|gres/gpu:a100=2|2-12:00:00|gres/gpu=4|5|6|cpu=10|7|8|gres/gpu=1
low|1|00:00:00||-1|requeue,within|RequiresReservation||1.000000|||||||||||||||
"""


def test_qos() -> None:
    found = accounts.read_qos(io.BytesIO(QOS.encode()))
    high = found["high"]
    assert (high.priority, high.usage_factor, high.preempts) == (50, 0.5, ("low", "normal"))
    assert (high.preempt_mode, high.preempt_exempt_s, high.grace_s, high.within) == ("CANCEL", 600, 150, False)
    assert high.flags == {"DenyOnLimit", "NoReserve", "NoDecay"}
    assert high.limits == Limits(
        grp_tres={"gres/gpu": 8, "cpu": 64},
        grp_jobs=3,
        grp_submit=9,
        grp_wall_min=1440,
        max_tres={"mem": 204_800, "node": 2},
        max_tres_node={"gres/gpu:a100": 2},
        max_wall_min=3600,
        max_tres_user={"gres/gpu": 4},
        max_jobs_user=5,
        max_submit_user=6,
        max_tres_account={"cpu": 10},
        max_jobs_account=7,
        max_submit_account=8,
        min_tres={"gres/gpu": 1},
    )
    assert high.unmodelled == (
        ("QOS high", "gracetime=00:02:30 is not modelled"), ("QOS high", "grptresmins=gres/gpu=1000 is not modelled"),
    )  # fmt: skip
    normal, low = found["normal"], found["low"]
    assert (normal.limits, normal.unmodelled, normal.preempt_mode, normal.preempt_exempt_s) == (
        NO_LIMITS, (), None, None,
    )  # fmt: skip
    assert (low.preempt_mode, low.within, low.preempt_exempt_s) == ("REQUEUE", True, None)
    assert low.unmodelled == (("QOS low", "flag RequiresReservation is not modelled"),)


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("MaxJobsPU|-3", "line 2: maxjobspu=-3: expected a whole number"),
        ("GrpTRES|gres/gpu", "line 2: TRES: gres/gpu: expected RESOURCE=AMOUNT"),
        ("MaxWall|soon", "line 2: maxwall=soon: expected a time"),
        ("PreemptMode|requeue,cancel", "line 2: QOS x: PreemptMode=requeue,cancel: expected one of"),
        ("UsageFactor|nan", "line 2: UsageFactor=nan"),
    ],
)
def test_unreadable_input_is_reported(cell: str, message: str) -> None:
    column, value = cell.split("|")
    with pytest.raises(InputError, match=message):
        accounts.read_qos(io.BytesIO(f"Name|Priority|{column}\nx|0|{value}\n".encode()))


def test_priorities_are_inherited_and_shares_may_be_the_parents() -> None:
    found = _dump("""Cluster - 'c':Fairshare=1
Parent - 'root'
Account - 'a':Fairshare=2147483647:Priority=30
Parent - 'a'
Account - 'b':Fairshare=4
User - 'u':Fairshare=parent:Partition='p'
Parent - 'b'
User - 'v':Fairshare=2:Priority=5
User - 'w'
""")
    assert tuple(found.values()) == (
        Association("root", None, None, 1, None), Association("a", None, "root", USE_PARENT, 30),
        Association("b", None, "a", 4, 30), Association("a", "u", None, USE_PARENT, 30, "p"),
        Association("b", "v", None, 2, 5), Association("b", "w", None, 1, 30),
    )  # fmt: skip
    with pytest.raises(InputError, match="line 1"):
        accounts.read_dump(io.BytesIO(b"nonsense\n"))


def test_max_limits_are_handed_down_and_group_limits_are_not() -> None:
    found = _dump("""Cluster - 'c':Fairshare=1:QOS='normal':MaxSubmitJobs=100:GrpTRES=gres/gpu=64
Parent - 'root'
Account - 'a':GrpTRES=cpu=5,gres/gpu=-1:GrpSubmitJobs=7:MaxTRESPerJob=gres/gpu=4,node=2:DefaultQOS='normal'
Parent - 'a'
User - 'u':MaxJobs=4:MaxWallDurationPerJob=90:MaxTRESPerJob=node=1:QOS='+high'
User - 'v':MaxSubmitJobs=-1:QOS='high,low':DefaultQOS='low'
User - 'w':QOS='-normal,+x':MaxTRESMinsPerJob=cpu=60
""")
    assert found["a", None].limits == Limits(
        grp_tres={"cpu": 5}, grp_submit=7, max_tres={"gres/gpu": 4, "node": 2}, max_submit=100
    )
    u = found["a", "u"]
    assert u.limits == Limits(max_tres={"gres/gpu": 4, "node": 1}, max_submit=100, max_jobs=4, max_wall_min=90)
    assert (u.qos, u.default_qos) == (("normal", "high"), "normal")
    v, w = found["a", "v"], found["a", "w"]
    assert (v.limits.max_submit, v.qos, v.default_qos) == (100, ("high", "low"), "low")
    assert (w.qos, w.default_qos) == (("x",), "normal")
    assert found["root", None].limits.grp_tres == {"gres/gpu": 64}


def test_unmodelled_settings_of_associations_are_listed() -> None:
    dump = b"Cluster - 'c':Fairshare=1:QOS='normal'\nParent - 'root'\nAccount - 'a':Fairshare=3:GrpTRESMins=cpu=5\n"
    dump += b"Parent - 'a'\nUser - 'u':DefaultAccount='a':MaxJobs=4:MaxJobsAccrue=2\n"
    assert unmodelled.of_dump(io.BytesIO(dump)) == (
        ("account a", "grptresmins=cpu=5 is not modelled"), ("user u", "maxjobsaccrue=2 is not modelled"),
    )  # fmt: skip


def test_names_of_before_15_08() -> None:
    old = {"grpcpus": "5", "maxnodespu": "2", "mincpus": "1", "grpmem": "2G", "maxcpus": ""}
    assert limits_of(old) == Limits(grp_tres={"cpu": 5, "mem": 2048}, max_tres_user={"node": 2}, min_tres={"cpu": 1})


_TRES = st.dictionaries(st.sampled_from(["cpu", "mem", "gres/gpu"]), st.integers(0, 9).map(float), max_size=2)
_COUNT = st.none() | st.integers(0, 9)
_LIMITS = st.builds(Limits, grp_tres=_TRES, grp_jobs=_COUNT, max_tres=_TRES, max_jobs=_COUNT, max_wall_min=_COUNT)


@given(_LIMITS, _LIMITS, _LIMITS)
@settings(max_examples=50, deadline=None, derandomize=True)
def test_handing_down_step_by_step_is_handing_down_at_once(one: Limits, two: Limits, three: Limits) -> None:
    assert one.below(two.below(three)).max_tres == one.below(two).below(three).max_tres
    found = one.below(two)
    assert (found.grp_tres, found.grp_jobs) == (one.grp_tres, one.grp_jobs)
    assert found.max_jobs == (two.max_jobs if one.max_jobs is None else one.max_jobs)
    assert one.below(NO_LIMITS) == one


def test_every_name_that_is_read_is_read_into_a_limit() -> None:
    for name in KNOWN:
        text = "cpu=3" if "tres" in name else "3"
        assert limits_of({name: text}) != NO_LIMITS, name
        assert limits_of({name: ""}) == NO_LIMITS
