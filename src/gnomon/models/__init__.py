"""The papers: named tuples and pure functions."""
