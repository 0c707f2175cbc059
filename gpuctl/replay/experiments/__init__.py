"""Many replays that differ in load, nodes, parameters and seeds, and what their figures are over the seeds."""
