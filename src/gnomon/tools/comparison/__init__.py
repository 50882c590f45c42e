"""The parts of `gnomon.compare`: candidates, trials, tests, and what is made of them."""
