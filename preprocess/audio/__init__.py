"""From an audio file to a float32 mono waveform at the VAE's rate."""
