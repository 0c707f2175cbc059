"""The compiler, its cache, and bundles of arrays that compiled code takes as one pointer."""

from gpuctl.compiled.blas import ask_later
from gpuctl.compiled.loading import when_compiling

when_compiling(ask_later)
