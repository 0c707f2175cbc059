"""Compiled: a binary heap of jobs, the one that goes before all others ahead."""

from __future__ import annotations

from gpuctl.compiled.jit import inner


@inner
def sink(m, heap, first, size, k, moved, ahead):  # type: ignore[no-untyped-def]
    """Put a job into the gap at a place of a heap, where it goes before none above it; below, others move up.

    Args:
        m: what `ahead` goes by.
        heap: jobs; those of this heap stand from `first` on.
        first: where the heap begins in it.
        size: its jobs, the gap among them.
        k: the gap's place in the heap.
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
