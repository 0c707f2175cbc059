"""The public interface for notebooks and scripts; use it as ``import gpuctl``."""

import logging as _logging

# with the first public name, all at once: Ctrl-C in the middle of an import would leave half of it
import duckdb as _duckdb  # noqa: F401
import numpy as _numpy  # noqa: F401
import polars as _polars  # noqa: F401

# a library prints nothing by itself: without a handler, Python writes warnings of loggers to stderr
_logging.getLogger("gpuctl").addHandler(_logging.NullHandler())
