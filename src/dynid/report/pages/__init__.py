"""The pages, one package each: their data, their sections in order, and a module and a template per section."""
