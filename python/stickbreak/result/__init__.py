"""Results: what a fit found, and what can be asked of it."""
