"""Tasks of a worker, one module per subject. Each function takes parameters, a progress channel and the worker's
file limits, and returns plain data."""
