"""Errors that gpuctl raises on purpose: each has a message and, if something can be done about it, a ``hint``.

Everything else that a function of gpuctl raises is a bug, except `TypeError` of arguments it does not have, and
`KeyboardInterrupt`.
"""

from gpuctl.core.errors import DependencyError, GpuctlError, InputError, StoreError, UsageError

__all__ = ["DependencyError", "GpuctlError", "InputError", "StoreError", "UsageError"]
