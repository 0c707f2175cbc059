"""OSDEC: deferrable jobs, in slots, in the capacity that on-demand jobs leave. `gpuctl.deferrable` has slots alone."""
