"""Models behind `gpuctl predict`; one module per predictor."""
