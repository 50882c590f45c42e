"""Densities, posteriors and divergences."""
