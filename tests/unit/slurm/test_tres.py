from __future__ import annotations

import pytest

from gpuctl.slurm.tres import Tres, gres, req_mem, tres

NO_VAL64 = 18446744073709551614


@pytest.mark.parametrize(
    ("text", "gpus", "kind"),
    [
        ("billing=1,cpu=1,gres/gpu:a100=4,gres/gpu=4,mem=1000M,node=1", 4, "a100"),
        ("gres/gpu=4,gres/gpu:a100=4", 4, "a100"),
        ("cpu=8,gres/gpu=2", 2, None),
        ("cpu=8,gres/gpu:h100=2", 2, "h100"),
        ("gres/gpu:a100=4,gres/gpu:v100=2,gres/gpu=6", 6, "a100,v100"),
        ("gres/gpu:a100=4,gres/gpu=6", 6, "a100"),
        ("cpu=8,mem=16G,node=1", 0, None),
        ("cpu=8,gres/gpumem=14G,gres/gpuutil=75", 0, None),
        ("", None, None),
        ("billing", None, None),
        (f"cpu=1,gres/gpu={NO_VAL64}", None, None),
        ("gres/gpu=99999999", None, None),
    ],
)
def test_trap_15_typed_and_untyped_gpus_are_the_same_gpus(text: str, gpus: float | None, kind: str | None) -> None:
    assert (tres(text).gpus, tres(text).gpu_type) == (gpus, kind)


@pytest.mark.parametrize(
    ("text", "gpus"),
    [
        ("gres/gpu:1g.5gb=1,gres/gpu=1", 1),
        ("gres/gpu:a100_3g.20gb=2,gres/gpu=2", 2),
        ("gres/gpu:nvidia_h100_1g.10gb+me=3", 3),
        ("gres/gpu:1g.5gb=2,gres/gpu:a100=1,gres/gpu=3", 3),
    ],
)
def test_trap_15_a_mig_instance_counts_as_one_gpu(text: str, gpus: float) -> None:
    assert tres(text).gpus == gpus
    assert tres(text).shared
    old = ",".join(part.removeprefix("gres/").replace("=", ":") for part in text.split(",") if "gpu=" not in part)
    assert (gres(old).gpus, gres(old).shared) == (gpus, True)


@pytest.mark.parametrize("part", ["gres/shard=2", "gres/shard:a100=2", "gres/mps=50", "gres/mps:a100=50"])
def test_trap_15_shards_and_mps_have_no_known_size(part: str) -> None:
    assert tres(f"cpu=1,{part}") == Tres(gpus=None, shared=True, cpus=1)
    assert tres(f"cpu=1,{part},gres/gpu=1").gpus == 1
    old = part.removeprefix("gres/").replace("=", ":")
    assert gres(old) == Tres(gpus=None, shared=True)
    assert gres(f"{old},gpu:2") == Tres(gpus=2, shared=True)


def test_everything_else_of_a_tres() -> None:
    assert tres("billing=20,cpu=4,gres/gpu=1,license/matlab=1,mem=1.5G,node=2") == Tres(
        1.0, None, False, 4, 2, 1536, 20
    )
    assert tres(f"cpu={NO_VAL64},mem={NO_VAL64},node=1") == Tres(gpus=0.0, nodes=1)
    assert tres("mem=0.98G").mem_mb == 1004
    assert tres("mem=512K").mem_mb == 0


@pytest.mark.parametrize(
    ("text", "gpus", "kind"),
    [
        ("gpu:4", 4, None),
        ("gpu:tesla:2", 2, "tesla"),
        ("gpu:tesla", 1, "tesla"),
        ("gpu", 1, None),
        ("gres:gpu:2", 2, None),
        ("gres/gpu:a100:2", 2, "a100"),
        ("gpu:a100:2(IDX:0,1),gpu:v100:1(IDX:0)", 3, "a100,v100"),
        ("craynetwork:1,gpu:2", 2, None),
        ("craynetwork:1", 0, None),
        ("", None, None),
        ("(null)", None, None),
    ],
)
def test_trap_15_gres_of_before_20_11(text: str, gpus: float | None, kind: str | None) -> None:
    assert (gres(text).gpus, gres(text).gpu_type) == (gpus, kind)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("4000Mc", (4000, "core")),
        ("31000Mn", (31000, "node")),
        ("16G", (16384, "job")),
        ("0.98G", (0.98 * 1024, "job")),
        ("0", (None, "job")),
        ("", (None, "job")),
        ("2147486448Mn", (None, "node")),
        ("?", (None, "job")),
    ],
)
def test_trap_15_memory_a_core_and_a_node(text: str, expected: tuple[float | None, str]) -> None:
    assert req_mem(text) == expected
