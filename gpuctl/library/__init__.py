"""The public interface for notebooks and scripts; use it as ``import gpuctl``."""
