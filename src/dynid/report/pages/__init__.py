"""The pages, one package each: their data, their sections in order, and a template per section."""
