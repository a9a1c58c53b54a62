"""Readers: one file a corpus format. Each yields clips and refused clips."""
