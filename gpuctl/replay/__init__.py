"""Replays a workload under a scheduling policy: what another scheduler would have done with the same jobs."""
