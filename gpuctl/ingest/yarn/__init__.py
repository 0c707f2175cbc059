"""YARN: what ResourceManager and NodeManager logs, REST answers and timeline dumps say, and how it is put together."""
