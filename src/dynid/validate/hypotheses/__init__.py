"""Hypotheses: what may be wrong with logs and models, and the evidence for each against the others."""
