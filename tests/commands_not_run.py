"""Command lines of the documents that the tests do not run, and why."""

NOT_RUN: dict[str, dict[str, str]] = {
    "README.md": {
        "pip install .": "tests/integration/test_wheel.py does it in an empty environment",
        "gpuctl --install-completion": "it would change the user's shell",
    },
    "docs/how-to/add-a-format.md": {
        "pip install -e .": "it would change the tests' environment",
        "cp docs/examples/format/": "it changes the checkout; test_example_format.py does it",
        "gpuctl analyze docs/examples/format/jobs.turnstile": "it needs the format that the line before adds",
    },
    "docs/research/accel.md": {
        "gpuctl accel train relmas": "it takes ten minutes; tests/integration/test_accel_cli.py has a short one",
        "gpuctl accel evaluate model": "it needs the model",
        "gpuctl accel simulate requests.csv --policy mix-eft,relmas": "it needs the model",
        "gpuctl report learned.json": "it needs the result",
    },
    "docs/research/chain.md": {
        "gpuctl chain train site.duckdb --nodes 16 --limit 24h --warm-up 2d --until": "it needs PyTorch",
        "gpuctl chain evaluate site.duckdb --nodes 16 --limit 24h --split 2026-03-16 --policy plan,newsvendor": (
            "it needs the model; tests/unit/research/chain/test_nets.py has one"
        ),
    },
    "docs/how-to/ci.md": {
        "useradd ": "it would make a user",
        "python3 -m venv /opt/gpuctl": "it writes to /opt",
        "install -m 755 examples/ci/nightly.sh /opt": "it writes to /opt",
        "cp examples/ci/gpuctl-nightly.service": "it writes to /etc",
        "systemctl daemon-reload": "it starts a service",
        "systemctl start": "it needs the service",
        "install -d -o gpuctl": "it needs the user",
        "cp examples/ci/nightly.cron": "it writes to /etc",
        "gpuctl ingest --from sacct": "it needs a Slurm: tests/integration/test_slurm_lab.py runs it on one",
    },
    "docs/reference/cli.md": {"gpuctl sample ": "it needs a Slurm, and runs until it is stopped"},
    "docs/how-to/gpu-telemetry.md": {
        "gpuctl ingest slurm/ telemetry/": "it needs the logs; tests/unit/analyze/test_gpu_usage.py has some",
        "gpuctl ingest --from prometheus": "it needs a Prometheus: tests/integration/test_prometheus_lab.py starts one",
        "gpuctl query": "it needs that store",
        "gpuctl analyze gpuctl.duckdb": "it needs that store",
    },
    "docs/how-to/replay.md": {
        "dask scheduler ": "it has no end; tests/integration/test_experiments_dask.py starts one",
        "dask worker ": "it needs the scheduler",
        "gpuctl replay jobs.csv --cluster 64x8 --policy fifo,tiresias --scale-load": "it needs the scheduler",
        "DASK_JOBQUEUE__SLURM__QUEUE=cpu ": "it needs a Slurm: tests/integration/test_slurm_lab.py runs it on one",
    },
    "docs/how-to/sources.md": {
        "gpuctl ingest --from sacct": "it needs a Slurm: tests/integration/test_slurm_lab.py runs it on one",
        "gpuctl sample ": "it needs a Slurm, and runs until it is stopped",
        "TZ=UTC SLURM_TIME_FORMAT=%s": "it needs a Slurm",
        "gpuctl profile record --pid 4711": "no such process; tests/integration/test_profile_record.py has real ones",
        "gpuctl ingest train-7.csv": "it needs that recording",
        "while sleep 1;": "it has no end",
        "curl -G http://prometheus": "it needs a Prometheus",
        "gpuctl ingest /data/jobs": "it needs the logs",
        "gpuctl analyze /data/jobs": "it needs the logs",
        "yarn logs ": "it needs a YARN",
        "condor_": "it needs an HTCondor",
    },
    "docs/tutorials/start.md": {
        "python3 -m venv .venv": "it would make an environment inside the tests' own",
        "pip install .": "tests/integration/test_wheel.py does it in an empty environment",
        "gpuctl ingest --from sacct": "it needs a Slurm: tests/integration/test_slurm_lab.py runs it on one",
        "gpuctl ingest --from yarn": "it needs a ResourceManager; tests/unit/ingest/yarn/test_live.py has its own",
    },
}
"""By document, how a line begins: the documents themselves say nothing of tests."""
