"""Finished things on disk: record batches, shards, journal, dataset metadata, card."""
