"""Measure what suspending a job on a real GPU costs: `python labs/gpu/suspend.py OUT.csv`; needs PyTorch.

Each job is started, asked to stop at some instant of an epoch, and started again, as `labs/pickyman` does it on
the CPU. A job finishes its epoch (mode `epoch`) or is killed (`abort`). Its checkpoint (weights, Adam's moments) is
written with fsync; before each start the page cache is dropped, as on another server. Columns are those of
`gpuctl train overhead`; times are seconds on the monotonic clock of the machine.
"""

from __future__ import annotations

import csv
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

SIZES = (
    ("mlp", 1536, 60), ("mlp", 6144, 250), ("mlp", 14336, 500),
    ("transformer", 512, 120), ("transformer", 2048, 400), ("transformer", 3072, 800),
    ("cnn", 64, 300), ("cnn", 192, 900),
)  # fmt: skip
"""Family, width, and MB of the data set that a job reads when it starts."""

COLUMNS = (
    "suspension_id", "job_id", "model", "family", "mode", "gpus", "checkpoint_bytes", "dataset_bytes", "epoch_s",
    "epoch_left_s", "epoch_done_s", "suspend_s", "resume_s", "loss_s",
    "write_s", "framework_s", "load_s", "first_step_s",
)  # fmt: skip


def job(family: str, width: int, steps: int, folder: Path) -> None:
    """Train for ever, say when epochs begin, and stop behind the epoch in which the file `stop` appears."""
    begun = time.monotonic()
    import numpy as np
    import torch
    from torch import nn

    torch.zeros(1, device="cuda")
    say("framework", time.monotonic() - begun)
    data = torch.from_numpy(np.fromfile(folder / "data.bin", np.float32)).cuda()
    model, shape = build(nn, family, width)
    model.cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-5, fused=True)
    saved = folder / "checkpoint.pt"
    loading = time.monotonic()
    if saved.exists():
        state = torch.load(saved, map_location="cuda", weights_only=True)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        del state
    torch.cuda.synchronize()
    say("load", time.monotonic() - loading)
    first, count = time.monotonic(), int(np.prod(shape))
    while True:
        say("epoch", time.monotonic())
        for step in range(steps):
            at = (step * count) % (data.numel() - count)
            loss = model(data[at : at + count].view(shape)).square().mean()
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            if step == 0 and first:
                torch.cuda.synchronize()
                say("first", time.monotonic() - first)
                first = 0.0
        torch.cuda.synchronize()
        if (folder / "stop").exists():
            say("end", time.monotonic())
            writing = time.monotonic()
            with (folder / "new.pt").open("wb") as stream:
                torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, stream)
                stream.flush()
                os.fsync(stream.fileno())
            (folder / "new.pt").rename(saved)
            say("write", time.monotonic() - writing)
            return


def build(nn: Any, family: str, width: int) -> tuple[Any, tuple[int, ...]]:
    """A model, and the shape of a batch of its input."""
    if family == "mlp":
        return nn.Sequential(*(layer for _ in range(3) for layer in (nn.Linear(width, width), nn.ReLU()))), (64, width)
    if family == "transformer":
        layer = nn.TransformerEncoderLayer(width, 8, 4 * width, batch_first=True)
        return nn.TransformerEncoder(layer, 4), (4, 64, width)
    blocks: list[Any] = [nn.Conv2d(3, width, 3, padding=1), nn.ReLU()]
    for _ in range(12):
        blocks += [nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU()]
    return nn.Sequential(*blocks), (16, 3, 64, 64)


def say(what: str, seconds: float) -> None:
    """Tell the recorder something."""
    print(what, f"{seconds:.4f}", flush=True)  # noqa: T201 - read by `record`


def record(out: Path, folder: Path) -> None:
    """Run every job through four suspensions; a row each."""
    random.seed(20261126)
    rows = []
    for family, width, megabytes in SIZES:
        name = f"{family}-{width}"
        place = folder / name
        place.mkdir(parents=True)
        (place / "data.bin").write_bytes(os.urandom(1 << 20).translate(bytes(i & 63 for i in range(256))) * megabytes)
        steps = 20
        run = start(family, width, steps, place)
        lasted = run.until("epoch", times=3)
        pace = (lasted[-1] - lasted[-2]) / steps
        run.kill()
        steps = max(20, round(3.0 / pace))
        expected = steps * pace
        run = start(family, width, steps, place)
        run.until("epoch")
        for number, mode in enumerate(("epoch", "epoch", "abort", "epoch")):
            begun = run.until("epoch")[-1]
            time.sleep(max(0.0, begun + expected * random.uniform(0.2, 0.9) - time.monotonic()))
            stopped_at = time.monotonic()
            if mode == "epoch":
                (place / "stop").touch()
                run.process.wait()
            else:
                run.kill()
            gone = time.monotonic()
            end = run.until("end")[-1] if mode == "epoch" else stopped_at
            write = run.until("write")[-1] if mode == "epoch" else 0.0
            (place / "stop").unlink(missing_ok=True)
            os.sync()
            Path("/proc/sys/vm/drop_caches").write_text("3\n")
            again = time.monotonic()
            run = start(family, width, steps, place)
            first = run.until("first")[-1]
            resumed = time.monotonic() - again
            suspend = gone - stopped_at
            left = end - stopped_at if mode == "epoch" else expected - (stopped_at - begun)
            lost = suspend - left if mode == "epoch" else suspend + stopped_at - begun
            saved = place / "checkpoint.pt"
            rows.append((
                f"{name}-{number}", name, name, family, mode, 1, saved.stat().st_size, megabytes << 20,
                expected, left, stopped_at - begun, suspend, resumed, lost + resumed, write,
                run.until("framework")[-1], run.until("load")[-1], first,
            ))  # fmt: skip
            print(rows[-1], flush=True)  # noqa: T201 - what the one who waits sees
            with out.open("w", newline="") as stream:
                writer = csv.writer(stream, lineterminator="\n")
                writer.writerow(COLUMNS)
                writer.writerows([round(v, 4) if isinstance(v, float) else v for v in row] for row in rows)
        run.kill()


class Run:
    """A job under way, and what it said so far."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.times: dict[str, list[float]] = {}

    def until(self, what: str, times: int = 1) -> list[float]:
        """Read on until it said this so often; the seconds it gave. What it said before counts."""
        assert self.process.stdout is not None
        while len(self.times.get(what, ())) < times:
            line = self.process.stdout.readline()
            if not line:
                raise RuntimeError(f"the job ended before it said {what}")
            word, seconds = line.split()
            self.times.setdefault(word, []).append(float(seconds))
        return self.times[what]

    def kill(self) -> None:
        """End it at once."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


def start(family: str, width: int, steps: int, place: Path) -> Run:
    """Start a job; its first checkpoint is that of its last clean stop."""
    command = [sys.executable, __file__, "--job", family, str(width), str(steps), str(place)]
    return Run(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))


if __name__ == "__main__":
    if sys.argv[1] == "--job":
        job(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), Path(sys.argv[5]))
    else:
        record(Path(sys.argv[1]), Path("/tmp/gpuctl-suspend"))
