"""Policies for deep learning that change running jobs: number of GPUs, placement and co-location."""
