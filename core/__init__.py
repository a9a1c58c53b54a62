"""What all layers agree on: errors, units, schema, digest, index, paths. A closed list (tests/test_layers.py)."""
