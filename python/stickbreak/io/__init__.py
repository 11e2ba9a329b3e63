"""Input and output: arrays, tables, data read in blocks, and files."""
