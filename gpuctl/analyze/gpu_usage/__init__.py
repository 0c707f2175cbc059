"""GPU usage of each job from telemetry: samples joined to holders of the GPUs, figures, clocks."""
