"""OSDEC: deferrable jobs, in slots, in the capacity that on-demand jobs leave.

Slots alone are in `gpuctl.research.deferrable`.
"""
