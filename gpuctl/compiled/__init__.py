"""What compiled code needs: the compiler, its cache, and bundles of arrays that it takes as one pointer."""

from gpuctl.compiled.blas import ask_later
from gpuctl.compiled.loading import when_compiling

when_compiling(ask_later)
