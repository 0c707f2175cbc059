"""Draws for each policy what it does with a part of the sample: docs/images/policies/NAME.svg.

python tools/policy_figures.py [NAME ...]   write them, or those of some policies
python tools/policy_figures.py --check      exit 1 where one is not what the code draws

The first 100 jobs of sample_data/jobs.csv on four servers of eight GPUs; aryl may borrow four more. All figures are of
the same window. `recorded` needs a trace: it has that of sample_data/philly. Replays run uncompiled.
"""

from __future__ import annotations

import os

os.environ["NUMBA_DISABLE_JIT"] = "1"

import re
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.replay.inputs.clusters import parse_cluster
from gpuctl.replay.inputs.job_csv import read_jobs
from gpuctl.replay.inputs.transforms import take
from gpuctl.replay.models.inference import parse_inference
from gpuctl.replay.policies import BUILT_IN
from gpuctl.replay.results.tables import result
from gpuctl.replay.run import replay
from gpuctl.reports.charts.registry import draw
from gpuctl.reports.charts.svg import drawing_settings
from gpuctl.reports.figures import called
from gpuctl.services.report_inputs import read_result

if TYPE_CHECKING:
    from gpuctl.core.results import Analysis

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images" / "policies"
STYLE = ROOT / "reports" / "assets" / "report.css"
LOAD = ROOT / "docs" / "examples" / "inference_load.csv"
JOBS, SERVERS, LENT, WINDOW = 100, "4x8", "4x8", (42_000.0, 57_000.0)
NAMES = ("ink", "grid", *(f"s{k}" for k in range(1, 9)))
FONT = '"DejaVu Sans",Verdana,sans-serif'


def outcome(policy: str) -> Analysis:
    """Return the allocations of the sample under a policy."""
    if policy == "recorded":
        return recorded()
    jobs = read_jobs(ROOT / "sample_data" / "jobs.csv")
    some = take(jobs, np.arange(JOBS))
    cluster = parse_cluster(SERVERS, some)
    if policy == "aryl":
        cluster = replace(cluster, inference=parse_inference(LENT, LOAD))
    done = replay(some, cluster, [(policy, {})], processes=1)
    return result(done, some, cluster, tables=("replay_gantt",), window=WINDOW)


def recorded() -> Analysis:
    """Return the allocations that the trace of the sample recorded."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "recorded.json"
        command = [sys.executable, "-m", "gpuctl", "replay", str(ROOT / "sample_data" / "philly")]
        command += ["--policy", "recorded", "--table", "replay_gantt", "--json", "--output", str(place), "-q"]
        subprocess.run(command, check=True, cwd=ROOT, env={**os.environ, "NUMBA_DISABLE_JIT": "0"})
        return read_result(place)


def drawn(policy: str) -> str:
    """Return the figure of a policy as a file of its own, in the colours of the reader's theme."""
    chart = called("chart-replay-gantt", "page")
    with drawing_settings():
        figure = draw(chart, outcome(policy).table("replay_gantt"))
    if figure.missing:
        sys.exit(f"{policy}: {figure.missing}")
    # what the page finds parts by
    svg = re.sub(r' data-[a-z]="\d+"| class="chart"| tabindex="0"', "", figure.svg)
    light, dark = (colors(theme) for theme in ("light", "dark"))
    style = (
        f"svg{{{light};color:var(--ink);font:11.5px {FONT}}}path:not([fill]){{fill:none}}text{{fill:currentColor}}"
        f"@media(prefers-color-scheme:dark){{svg{{{dark}}}}}"
    )
    head, _, rest = svg.partition(">")
    return f'{head} xmlns="http://www.w3.org/2000/svg" width="560"><style>{style}</style>{rest}\n'


def colors(theme: str) -> str:
    """Return the colours of a theme of the page, as declarations."""
    text = STYLE.read_text("utf-8")
    begin = text.index('[data-theme="dark"]' if theme == "dark" else ":root")
    known = dict(re.findall(r"--([a-z0-9]+): (#[0-9a-f]+);", text[begin : text.index("}", begin)]))
    return ";".join(f"--{name}:{known[name]}" for name in NAMES)


def main() -> None:
    """Write the figures, or check them."""
    wanted = [name for name in sys.argv[1:] if not name.startswith("-")] or list(BUILT_IN)
    IMAGES.mkdir(parents=True, exist_ok=True)
    for name in wanted:
        place, text = IMAGES / f"{name}.svg", drawn(name)
        if "--check" not in sys.argv[1:]:
            place.write_text(text, "utf-8")
        elif not place.is_file() or place.read_text("utf-8") != text:
            sys.exit(f"{place}: not what the code draws; run: make docs")


if __name__ == "__main__":
    main()
