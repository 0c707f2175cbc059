"""Models that answer `gpuctl predict`; one module a predictor."""
