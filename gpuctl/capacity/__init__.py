"""How many GPUs are needed: demand forecast from a trace, futures drawn from it, and cluster sizes that meet a goal."""
