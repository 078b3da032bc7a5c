"""Recursive identification methods: square-root recursive least squares on a stream, with forgetting."""
