"""Deferrable jobs in the capacity that on-demand jobs leave: windows, irrevocable starts, evictions."""
