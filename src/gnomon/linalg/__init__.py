"""The data matrix as an operator, and small dense solves."""
