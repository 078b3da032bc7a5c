"""Reproductions of published results, one file each; files that start with an underscore are shared."""
