"""Tasks of a worker, one module per subject. Each function takes parameters, a progress channel and file limits."""
