"""DCA-GM and SDCA-GM: discriminative components by Gaussian mixtures [PGK07]."""
