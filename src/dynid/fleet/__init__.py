"""Many robots of one type: what they share, what is each one's own, which of them differ, and since when."""
