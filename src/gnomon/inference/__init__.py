"""Loops that know no model: iterate, accelerate, sample, call back."""
