"""SPPCA at a stated or chosen strength: labels completed on all rows, then a closed form."""
