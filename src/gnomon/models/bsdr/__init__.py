"""Bayesian supervised dimensionality reduction and the multinomial probit [G13]."""
