"""What the formats of network traffic share: bytes of a job over time, from counters or from differences."""
