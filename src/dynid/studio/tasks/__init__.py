"""What a worker does for the studio, one noun a file; each function takes parameters, a voice and the worker's bounds,
and gives plain data."""
