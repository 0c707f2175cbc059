"""Errors that gpuctl raises on purpose: each has a message, and ``hint``, what to do about it.

Everything else that a function of gpuctl raises is a bug, except `OSError` of files it was asked to write, `TypeError`
of arguments it does not have, and `KeyboardInterrupt`.
"""

from gpuctl.core.errors import DependencyError, GpuctlError, InputError, StoreError, UsageError

__all__ = ["DependencyError", "GpuctlError", "InputError", "StoreError", "UsageError"]
