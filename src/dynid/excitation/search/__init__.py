"""Search for an optimal exciting motion: criteria, optimisation problem, random starts, and sequential programming."""
