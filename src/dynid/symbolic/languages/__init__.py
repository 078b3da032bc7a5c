"""Languages: a program as text, or evaluated on objects of other packages."""
