"""From corpora to shards: read, plan, dispatch, decode, encode, assemble rows. ``run.py`` is the file to open first."""
