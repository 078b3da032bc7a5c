"""The pages, a folder each: what they show, their sections in order, and a file and a template for every section."""
