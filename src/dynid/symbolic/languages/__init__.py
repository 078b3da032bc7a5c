"""Languages: a program as text, or replayed on objects of other packages."""
