"""gpuctl: turns the logs of a GPU cluster into answers and what-ifs.

The folders ``queries/``, ``predictors/`` and ``reports/`` are sub-packages of this one. A wheel carries
them inside it; in a checkout they lie beside it, and the lines below make both look the same.
"""

from pathlib import Path

__version__ = "0.1.0"

_root = Path(__file__).resolve().parent.parent
if (_root / "pyproject.toml").is_file() and (_root / "queries").is_dir():
    __path__.append(str(_root))
