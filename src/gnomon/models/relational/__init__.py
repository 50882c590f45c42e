"""Rows that are linked: relational PCA of the paper, a graph filter, and a learnt model."""
