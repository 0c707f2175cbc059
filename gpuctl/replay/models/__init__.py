"""Flat input and output data of a replay, and the models of speed and preemption costs."""
