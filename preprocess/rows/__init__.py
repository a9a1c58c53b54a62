"""From a clip and its latents to the columns of a row."""
