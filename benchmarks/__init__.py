"""Benchmarks: dynid and other tools side by side, one file each; files that start with an underscore are shared."""
