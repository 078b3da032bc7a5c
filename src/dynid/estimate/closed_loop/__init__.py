"""Closed-loop simulation of the robot along the reference of each log, for closed-loop identification methods."""
