"""Policies of deep-learning clusters that change jobs while they run: how many GPUs, where, and beside whom."""
