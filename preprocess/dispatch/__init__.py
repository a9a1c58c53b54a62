"""Processes: who sends what to whom, who decides, who is restarted."""
