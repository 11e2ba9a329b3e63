"""Data in shards, and the workers of a cluster that hold them."""
