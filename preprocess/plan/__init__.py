"""Every clip of the run, sorted, cut into encode batches, dealt into chunks. Pure data, made without torch."""
