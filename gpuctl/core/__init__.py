"""Types, units, time and errors shared by every room. Standard library only."""
