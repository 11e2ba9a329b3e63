"""Results: what a fit found, and queries on it."""
