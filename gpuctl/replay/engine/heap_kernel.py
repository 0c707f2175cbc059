"""Compiled: a binary heap of jobs, the first in order on top."""

from __future__ import annotations

from gpuctl.compiled.jit import inner


@inner
def sink(m, heap, first, size, k, moved, ahead):  # type: ignore[no-untyped-def]
    """Sink a job from a gap in a heap; jobs that go before it move up.

    Args:
        m: the data of `ahead`.
        heap: jobs; this heap starts at `first`.
        first: index of the heap's top.
        size: its jobs, the gap among them.
        k: the gap's position in the heap.
        moved: the job.
        ahead: called as ``ahead(m, a, b)``: whether job a goes before b.
    """
    while True:
        child = 2 * k + 1
        if child >= size:
            break
        if child + 1 < size and ahead(m, heap[first + child + 1], heap[first + child]):
            child += 1
        if not ahead(m, heap[first + child], moved):
            break
        heap[first + k] = heap[first + child]
        k = child
    heap[first + k] = moved
