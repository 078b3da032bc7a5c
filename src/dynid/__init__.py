"""dynid identifies the dynamic model of a robot from its own motion."""
