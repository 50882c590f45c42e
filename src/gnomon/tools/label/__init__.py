"""Labels asked for one after another: what is learnt from them and which row comes next."""
