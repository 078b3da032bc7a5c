"""Exciting motions of robots with a free base whose feet stand still on the ground."""
