"""The simulator: its arrays, the heap of coming events, the life of a job, placement, one instant after the other."""
