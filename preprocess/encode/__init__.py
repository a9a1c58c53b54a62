"""Encoders: the VoxCPM AudioVAE, the bundled tiny one, a dummy."""
