"""The simulator: its arrays, event heap, life of a job, placement, and the loop over instants."""
