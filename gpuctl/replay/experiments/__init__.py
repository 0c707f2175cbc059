"""Many replays that differ in load, servers, parameters and seeds, and what their figures are over the seeds."""
