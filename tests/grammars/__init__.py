"""Structured random inputs of the formats that gpuctl reads: sound in shape, at the edges in their values."""
