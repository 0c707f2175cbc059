"""The checks of ``gpuctl doctor``: the installation, the machine, trace stores and saved models."""
