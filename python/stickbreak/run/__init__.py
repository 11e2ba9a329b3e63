"""Fitting: how the posterior is found."""
