"""Defers Numba's import of SciPy for BLAS until code multiplies matrices; Numba alone imports it on start."""

from __future__ import annotations


def ask_later() -> None:
    """Load Numba's array functions without checking for BLAS; this package installs SciPy, which has it."""
    from numba.np import linalg

    look = linalg.ensure_blas
    linalg.ensure_blas = lambda: None
    try:
        # stores what it is given
        import numba.np.arraymath  # noqa: F401
    finally:
        linalg.ensure_blas = look
