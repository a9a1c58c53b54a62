"""Synthesized singing: scores, voice, and a small demo corpus of every kind."""
