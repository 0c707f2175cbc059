"""What is measured: one job from start to end beside a recorder, and one job that is suspended and resumed."""

from __future__ import annotations

import csv
import itertools
import os
import subprocess
import sys
import time
from typing import Any

from labs.pickyman import net, plan
from labs.pickyman.models import DATA
from labs.pickyman.running import HERE, Event, Running, bench

REST_S = 0.5
"""Between the end of a suspended job and the request to resume it."""


def record_one(job: plan.Job) -> dict[str, Any]:
    """Run a job from start to end beside a recorder; return its rows of the three tables."""
    with bench(job) as here:
        samples = here.folder / "samples.csv"
        origin = time.monotonic() + 0.3
        recorder = subprocess.Popen(
            here.network.inside(sys.executable, HERE / "recorder.py", net.IFACE, f"{origin!r}", samples),
            env={**os.environ, "PATH": net.PATH},
        )
        time.sleep(max(0.0, origin - time.monotonic()))
        running = here.start()
        try:
            ended = running.gone()
        finally:
            running.kill()
            recorder.terminate()
            recorder.wait(timeout=10)
        if not running.events or running.events[-1]["event"] != "over":
            raise RuntimeError(f"{job.name} ended early: {running.events[-3:]}")
        with samples.open(encoding="ascii", newline="") as lines:
            counted = [(float(row["t"]), int(row["received"]), int(row["sent"])) for row in csv.DictReader(lines)]
    return recorded(job, running.events, counted, origin, ended)


def recorded(
    job: plan.Job, events: list[Event], counted: list[tuple[float, int, int]], origin: float, ended: float
) -> dict[str, Any]:
    """A job's rows: times in seconds since ``origin``, bytes since the sample before."""
    epochs = [event for event in events if event["event"] == "epoch"]
    saved = [event for event in events if event["event"] == "saved"]
    a_sample = sum(DATA[job.family].row)
    validation = job.valid * plan.SHARD_SAMPLES[job.family] * a_sample
    row = {
        "job_id": job.name, "model": job.model, "family": job.family, "batch": job.batch, "samples": job.samples,
        "gpus": job.gpus, "epochs": job.epochs, "dataset_bytes": job.samples * a_sample + validation,
        "checkpoint_bytes": saved[-1]["bytes"], "cached": int(job.cached), "run_time_s": round(ended - origin, 3),
        "validation_bytes": validation,
        "checkpoint_every": job.every, "first_step_s": round(first(events, "step")["at"] - origin, 3),
        "first_loss": round(epochs[0]["loss"], 4), "last_loss": round(epochs[-1]["loss"], 4),
    }  # fmt: skip
    traffic = [
        {"job_id": job.name, "t": now[0], "bytes": now[1] - before[1]} for before, now in itertools.pairwise(counted)
    ]
    times = [
        {
            "job_id": job.name, "epoch": event["epoch"], "start_s": round(event["start"] - origin, 3),
            "end_s": round(event["end"] - origin, 3), "trained_s": round(event["trained"] - origin, 3),
            "validated_s": round(event["validated"] - origin, 3),
        }
        for event in epochs
    ]  # fmt: skip
    return {"jobs": [row], "traffic": traffic, "epochs": times}


def first(events: list[Event], name: str) -> Event:
    """The first event of a name."""
    return next(event for event in events if event["event"] == name)


def suspend_one(chain: plan.Chain) -> dict[str, Any]:
    """Suspend and resume a job as often as the chain says; return a row for each time."""
    job = plan.Job(
        chain.name, chain.family, chain.width, chain.batch, chain.shards, chain.gpus,
        epochs=10_000, valid=chain.valid, every=1,
    )  # fmt: skip
    rows: list[dict[str, Any]] = []
    with bench(job) as here:
        running = here.start()
        try:
            running.wait_for("epoch")  # compiles
            before = running.wait_for("epoch")
            usual_s = before["validated"] - before["start"]
            for mode, part in chain.stops:
                time.sleep(max(0.0, before["end"] + part * usual_s - time.monotonic()))
                stopped_at = time.monotonic()
                running.stop() if mode == "epoch" else running.kill()
                gone = running.gone()
                last = running
                time.sleep(REST_S)
                running = here.start(resume=True)
                running.wait_for("step")
                rows.append(suspended(job, mode, last.events, running, (before["end"], stopped_at, gone), usual_s))
                before = running.wait_for("epoch")
        finally:
            running.kill()
            running.gone()
    for number, row in enumerate(rows):
        row["suspension_id"] = f"{job.name}-{number}"
    return {"suspensions": rows}


def suspended(
    job: plan.Job, mode: str, events: list[Event], resumed: Running, times: tuple[float, float, float], usual_s: float
) -> dict[str, Any]:
    """The row of one suspension.

    Args:
        events: of the run that was suspended.
        resumed: the run that went on, after its first step.
        times: when the epoch began, when the stop was asked for, when the processes were gone; monotonic clock.
        usual_s: length of an epoch without its checkpoint.
    """
    begun, stopped_at, gone = times
    framework, loaded, step = (first(resumed.events, name)["at"] for name in ("framework", "loaded", "step"))
    resume_s = step - resumed.began
    saved = [event for event in events if event["event"] == "saved"][-1]
    if mode == "epoch":
        idle_since = [event for event in events if event["event"] == "epoch"][-1]["validated"]
        left_s, write_s = idle_since - stopped_at, saved["at"] - saved["began"]
    else:
        # what was trained since the last checkpoint is lost; the epoch would have gone on for as long as usual
        idle_since, left_s, write_s = begun, usual_s - (stopped_at - begun), 0.0
    return {
        "suspension_id": "", "job_id": job.name, "model": job.model, "family": job.family, "mode": mode,
        "gpus": job.gpus, "batch": job.batch, "samples": job.samples, "checkpoint_bytes": saved["bytes"],
        "dataset_bytes": job.samples * sum(DATA[job.family].row), "epoch_s": round(usual_s, 3),
        "epoch_left_s": round(left_s, 3), "epoch_done_s": round(stopped_at - begun, 3),
        "suspend_s": round(gone - stopped_at, 3), "resume_s": round(resume_s, 3),
        "loss_s": round(gone - idle_since + resume_s, 3), "write_s": round(write_s, 3),
        "framework_s": round(framework - resumed.began, 3), "load_s": round(loaded - framework, 3),
        "first_step_s": round(step - loaded, 3),
    }  # fmt: skip
