"""The examples at the end of help pages: what people ask, and the command that answers it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from typer.core import TyperCommand

if TYPE_CHECKING:
    from collections.abc import Mapping

EXAMPLES: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    "analyze": (
        ("Who wastes the most GPU-hours?", "gpuctl analyze site.duckdb --table users"),
        ("Which jobs leave their GPUs idle?", "gpuctl analyze site.duckdb --table idle_jobs --idle-below 5"),
        (
            "What is the GPU utilization of each user, day by day?",
            "gpuctl analyze site.duckdb --table activity_by_user --by day",
        ),
        (
            "How many free GPUs could no waiting job use (fragmentation over time)?",
            "gpuctl analyze site.duckdb --table fragmentation",
        ),
        ("What do the jobs of each queue wait for?", "gpuctl analyze site.duckdb --table delay_by_queue"),
        ("Which nodes are bad?", "gpuctl analyze site.duckdb --table failure_nodes"),
        ("Which failures cost the most GPU time?", "gpuctl analyze site.duckdb --table failure_reasons"),
        (
            "How did a queue's large jobs perform in November?",
            "gpuctl analyze site.duckdb --queue gpu --gpus 8.. --since 2026-11-01 \\\n    --until 2026-12-01 --all",
        ),
        ("Every table as CSV, for pandas or a spreadsheet", "gpuctl analyze site.duckdb --csv tables"),
    ),
    "explain": (("Why did job 4047 wait?", "gpuctl explain 4047 site.duckdb"),),
    "classify": (("Why did this program fail?", "gpuctl classify slurm-4047.out"),),
    "report": (
        (
            "How does November compare with October?",
            "gpuctl report site.duckdb --compare 2026-10 2026-11",
        ),
        (
            "Fail in CI if waits are too long",
            "gpuctl report site.duckdb --fail-if 'queueing.p95_wait_h > 4' \\\n    --junit checks.xml",
        ),
        ("A page without names, for a colleague", "gpuctl report site.duckdb --anonymise --html public.html"),
    ),
    "query": (
        (
            "Which jobs waited longest?",
            "gpuctl query site.duckdb 'SELECT job, \"user\", wait_s FROM jobs\n    ORDER BY wait_s DESC LIMIT 10'",
        ),
        (
            "A table as Parquet",
            "gpuctl query site.duckdb 'SELECT * FROM attempts' --format parquet \\\n    --output attempts.parquet",
        ),
    ),
    "plan": (
        ("How many GPUs keep the p95 wait under an hour next quarter?", "gpuctl plan site.duckdb --horizon 1q"),
        ("Which queue needs more?", "gpuctl plan site.duckdb --goal mean-wait=30min --by-queue"),
        ("What would the loss of a rack cost in waits?", "gpuctl plan site.duckdb --remove-nodes rack:r1"),
    ),
    "replay": (
        (
            "Would other schedulers do better? (with 95 % intervals)",
            "gpuctl replay site.duckdb --policy fifo-skip,fair,srtf",
        ),
        (
            "What would two more nodes change?",
            "gpuctl replay site.duckdb --policy fifo-skip --add-nodes 0,2",
        ),
        (
            "What would a bf_window other than in slurm.conf change?",
            "gpuctl replay site.duckdb --slurm-conf slurm.conf \\\n"
            "    --policy slurm,far=slurm --param far.bf_window=4320",
        ),
        (
            "How do waits grow with the load? (a sweep with intervals and plots)",
            "gpuctl replay site.duckdb --policy fifo-skip,fair --scale-load 0.8:1.2:0.1 \\\n"
            "    --seed 1..10 --html sweep.html",
        ),
        (
            "Ten seeds on four processors, one row per replay",
            "gpuctl replay site.duckdb --policy fifo-skip,fair --seed 1..10 --jobs 4 \\\n    --parquet runs",
        ),
        (
            "How far is a replay from the recorded history?",
            "gpuctl replay site.duckdb --policy philly --against recorded",
        ),
    ),
    "train runtime": (
        ("How well can run times be predicted here?", "gpuctl train runtime site.duckdb --model run-times"),
    ),
    "predict runtime": (
        (
            "How long will my jobs run? (mine.csv: job_id,user,queue,gpus)",
            "gpuctl predict runtime --jobs mine.csv --model run-times",
        ),
    ),
    "train wait": (("How well can waits be forecast here?", "gpuctl train wait site.duckdb --model waits"),),
    "predict wait": (
        (
            "How long would a job of 8 GPUs and a day wait, submitted now?",
            "gpuctl predict wait site.duckdb --model waits --gpus 8 --limit 24h",
        ),
        (
            "How long will each of my jobs wait? (mine.csv: job_id,user,queue,gpus,time_limit_s)",
            "gpuctl predict wait site.duckdb --model waits --jobs mine.csv",
        ),
    ),
    "fit": (
        ("A model of last year's jobs", "gpuctl fit site.duckdb -o model"),
        ("A model that may be published", "gpuctl fit site.duckdb --anonymous -o model"),
    ),
    "convert": (
        ("The jobs of a log for Batsim", "gpuctl convert site.duckdb --to batsim -o workload.json"),
        ("The same as a CSV for gpuctl replay", "gpuctl convert site.duckdb --to jobs-csv -o jobs.csv"),
    ),
    "synth": (
        (
            "Ten thousand generated jobs at 90 % load, and their waits",
            "gpuctl synth model --jobs 10000 --load 0.9 -o jobs.csv\n"
            "gpuctl replay jobs.csv --cluster pool:512 --policy fifo,fifo-skip",
        ),
        (
            "More users, a fifth of the jobs on 16 GPUs or more, a heavier tail",
            "gpuctl synth model --jobs 10000 --load 0.9 --load-by users --large 0.2:16 \\\n    --tail 1.2 -o jobs.csv",
        ),
    ),
    "chain evaluate": (
        (
            "When should the successor of a 24-hour job be submitted? (reactive: when the job ends)",
            "gpuctl chain evaluate site.duckdb --nodes 16 --limit 24h --split 2026-03-16 \\\n"
            "    --policy reactive,avg,plan",
        ),
        (
            "What would PriorityFlags=ACCRUE_ALWAYS and --dependency do for chains of five jobs?",
            "gpuctl chain evaluate site.duckdb --nodes 16 --limit 24h --split 2026-03-16 --jobs 5 \\\n"
            "    --policy reactive,dependency",
        ),
    ),
    "deferrable simulate": (
        (
            "How much deferrable work fits, and how long does it wait?",
            "gpuctl deferrable convert site.duckdb -o slots\ngpuctl deferrable simulate slots",
        ),
    ),
    "chain train": (
        (
            "Learn how long jobs wait here",
            "gpuctl chain train site.duckdb --nodes 16 --limit 24h -o chain-model",
        ),
    ),
    "accel simulate": (
        (
            "Which rule meets the most deadlines for a thousand requests in bursts?",
            "gpuctl accel generate --n 1000 --load 0.8 --burst -o requests.csv\n"
            "gpuctl accel simulate requests.csv --policy fcfs-eft,edf-eft+h,sjf-eft,mix-eft",
        ),
    ),
    "ingest": (
        ("Read logs once, then query the store", "gpuctl ingest logs --db site.duckdb"),
        (
            "The same from a live Slurm, without files",
            "gpuctl ingest --from sacct --since 2026-11-01 --db site.duckdb",
        ),
    ),
}
"""By command: questions, each with the lines of a shell that answer it; site.duckdb stands for the reader's store."""


class WithExamples(TyperCommand):
    """A command whose help page ends with its examples."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write them as they stand: a wrapped command line is none."""
        examples = EXAMPLES.get(ctx.command_path.partition(" ")[2], ())
        if not examples:
            return
        with formatter.section("Examples"):
            for question, lines in examples:
                formatter.write(f"  # {question}\n" + "".join(f"  {line}\n" for line in lines.splitlines()))
