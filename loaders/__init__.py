"""The training side: reading shards back in batches. Needs core only."""
