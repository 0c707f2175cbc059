"""When Numba looks for BLAS: where code multiplies matrices. By itself it does as it starts, too, and imports scipy."""

from __future__ import annotations


def ask_later() -> None:
    """Load Numba's functions of arrays without a look for BLAS; scipy, which has it, is installed with this package."""
    from numba.np import linalg

    look = linalg.ensure_blas
    linalg.ensure_blas = lambda: None
    try:
        # keeps what it is told
        import numba.np.arraymath  # noqa: F401
    finally:
        linalg.ensure_blas = look
