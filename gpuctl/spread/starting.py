"""Starts processes that import nothing of the program that starts them."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def without_main() -> Iterator[None]:
    """Keep processes that start in this context from importing the main module of this one.

    multiprocessing would: a script that calls gpuctl outside ``if __name__ == "__main__"`` would run again in each
    process. They need nothing of it, because they run functions of gpuctl.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main
