"""The lessons of the Philly study for any cluster: what they would have saved in GPU-hours and waiting."""
