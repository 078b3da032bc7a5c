"""Motions worth recording: trajectories, what they excite, their limits, and the search for the best."""
