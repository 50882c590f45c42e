"""The scikit-learn face: check, call, store."""
