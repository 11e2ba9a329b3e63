"""Independent, slow and plain implementations of the core's mathematics, used only in tests."""
