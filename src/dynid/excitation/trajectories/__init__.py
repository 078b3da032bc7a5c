"""Trajectories as functions of time, families of trajectories for a search, and their files."""
