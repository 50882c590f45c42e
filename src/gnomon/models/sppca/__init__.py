"""SPPCA and S2PPCA by maximum likelihood [YYTKW06], and what a fitted one says of new rows."""
