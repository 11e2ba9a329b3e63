"""Independent, slow and plain versions of what the core computes. Nothing here is used outside the tests."""
