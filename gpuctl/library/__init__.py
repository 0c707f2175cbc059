"""The public interface for notebooks and scripts; use it as ``import gpuctl``."""

# with the first public name, all at once: Ctrl-C in the middle of an import would leave half of it
import duckdb as _duckdb  # noqa: F401
import numpy as _numpy  # noqa: F401
import polars as _polars  # noqa: F401
