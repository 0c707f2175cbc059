"""What policies, log formats and predictors of your own are made with; import them from nowhere deeper.

Policies: docs/how-to/write-a-policy.md. Formats: docs/how-to/add-a-format.md. Analyses are ``.sql`` files
(docs/how-to/add-an-analysis.md) and need nothing of this.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpuctl.core.errors import InputError as InputError
    from gpuctl.core.line_reader import Line as Line
    from gpuctl.core.line_reader import RowError as RowError
    from gpuctl.core.line_reader import numbered_lines as numbered_lines
    from gpuctl.core.states import State as State
    from gpuctl.ingest.core.format import Format as Format
    from gpuctl.ingest.core.format import Sink as Sink
    from gpuctl.ingest.core.job_rows import ATTEMPTS as ATTEMPTS
    from gpuctl.ingest.core.job_rows import JOBS as JOBS
    from gpuctl.ingest.core.job_rows import PLACEMENTS as PLACEMENTS
    from gpuctl.ingest.core.job_rows import AttemptRow as AttemptRow
    from gpuctl.ingest.core.job_rows import JobRow as JobRow
    from gpuctl.ingest.core.job_rows import PlacementRow as PlacementRow
    from gpuctl.ingest.core.job_rows import add_queues as add_queues
    from gpuctl.ingest.core.job_rows import new_jobs as new_jobs
    from gpuctl.predictors.contract import Job as Job
    from gpuctl.predictors.contract import Predictor as Predictor
    from gpuctl.replay.contract.arrivals import Arrivals as Arrivals
    from gpuctl.replay.contract.compiled_policy import FIRST_REASON as FIRST_REASON
    from gpuctl.replay.contract.compiled_policy import WAITING as WAITING
    from gpuctl.replay.contract.compiled_policy import Bundle as Bundle
    from gpuctl.replay.contract.compiled_policy import CompiledPolicy as CompiledPolicy
    from gpuctl.replay.contract.compiled_policy import compiled as compiled
    from gpuctl.replay.contract.compiled_policy import find_for as find_for
    from gpuctl.replay.contract.compiled_policy import floats as floats
    from gpuctl.replay.contract.compiled_policy import inner as inner
    from gpuctl.replay.contract.compiled_policy import ints as ints
    from gpuctl.replay.contract.compiled_policy import launch as launch
    from gpuctl.replay.contract.compiled_policy import loop as loop
    from gpuctl.replay.contract.compiled_policy import placements as placements
    from gpuctl.replay.contract.compiled_policy import shapes as shapes
    from gpuctl.replay.contract.policy import Parameter as Parameter
    from gpuctl.replay.contract.python_policy import PythonPolicy as PythonPolicy
    from gpuctl.replay.contract.python_policy import RankPolicy as RankPolicy

_NAMES = {
    "core.errors": ("InputError",),
    "core.line_reader": ("Line", "RowError", "numbered_lines"),
    "core.states": ("State",),
    "ingest.core.format": ("Format", "Sink"),
    "ingest.core.job_rows": (
        "ATTEMPTS", "JOBS", "PLACEMENTS", "AttemptRow", "JobRow", "PlacementRow", "add_queues", "new_jobs",
    ),
    "predictors.contract": ("Job", "Predictor"),
    "replay.contract.arrivals": ("Arrivals",),
    "replay.contract.compiled_policy": (
        "FIRST_REASON", "WAITING", "Bundle", "CompiledPolicy", "compiled", "find_for", "floats", "inner", "ints",
        "launch", "loop", "placements", "shapes",
    ),
    "replay.contract.policy": ("Parameter",),
    "replay.contract.python_policy": ("PythonPolicy", "RankPolicy"),
}  # fmt: skip
"""Public names, by the module of gpuctl that has them."""
_MODULES = {name: module for module, names in _NAMES.items() for name in names}
__all__ = [*_MODULES]  # noqa: PLE0604 - names of the mapping


def __getattr__(name: str) -> Any:
    # imported when it is used: a format needs no compiler
    if name in _MODULES:
        return getattr(import_module(f"gpuctl.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'gpuctl.plugins' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
