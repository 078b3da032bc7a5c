"""Limits of a motion: joints, torques and workspace, their file, and the check of a motion."""
