"""Scripts that repeat the tables and figures of the four papers; see docs/reproduction."""
