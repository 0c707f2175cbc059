"""The lessons of the Philly study on anyone's cluster: what its jobs would have saved, in GPU-hours and in waiting."""
