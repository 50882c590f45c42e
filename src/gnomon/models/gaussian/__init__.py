"""Linear Gaussian models of the inputs alone: PPCA by any route, with gaps, of any dimension."""
