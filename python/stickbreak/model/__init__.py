"""Specifications: what the data are made of."""
