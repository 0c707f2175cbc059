"""Streams of bytes, whatever they are packed in."""
