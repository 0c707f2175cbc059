"""The flat data that goes into a replay and comes out of it, and the models of speed and of preemption costs."""
