"""The command line: options to configuration, one call, output. The only layer that imports click and tqdm."""
