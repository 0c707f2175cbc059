"""GPU telemetry: samples of GPUs, their identity and their faults, from the tools that sites have."""
