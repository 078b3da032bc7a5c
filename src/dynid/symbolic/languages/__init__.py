"""Generated code in several languages, and its evaluation on symbols of CasADi and SymPy."""
