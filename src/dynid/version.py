"""The version of this package, in a place that every room can import."""

__version__ = "0.1.0"
