"""Hypotheses on faults of logs and models, and the evidence for each relative to the others."""
