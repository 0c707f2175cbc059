"""What the telemetry of GPUs comes to for each job: samples joined to those who held the GPUs, figures, clocks."""
