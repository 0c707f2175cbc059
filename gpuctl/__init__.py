"""gpuctl: turns the logs of a GPU cluster into answers and what-ifs.

The folders ``queries/``, ``predictors/`` and ``reports/`` are sub-packages of this one. A wheel carries
them inside it; in a checkout they lie beside it, and the lines below make both look the same.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # not from typing: its import, and pathlib's, would delay the handler of Ctrl-C (cli/start.py)
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from typing import Any

__version__ = "0.2.0"
DISTRIBUTION = "gpuctl-toolkit"
"""What pip installs. On PyPI the name ``gpuctl`` belongs to another program, whose package is called the same."""

_ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))  # noqa: PTH120


class _Beside:
    """Finds these three in the checkout, and nothing else there: its root on ``__path__`` would make all of it ours."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name not in {"gpuctl.queries", "gpuctl.predictors", "gpuctl.reports"}:
            return None
        from importlib.machinery import PathFinder

        return PathFinder.find_spec(name, [_ROOT], target)


if os.path.isfile(os.path.join(_ROOT, "pyproject.toml")) and os.path.isdir(os.path.join(_ROOT, "queries")):  # noqa: PTH112, PTH113, PTH118
    sys.meta_path.append(_Beside)
