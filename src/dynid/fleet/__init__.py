"""Fleets of robots of one type: shared and individual parameters, differences, and changes over time."""
