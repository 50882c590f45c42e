"""The command line as ``python -m gnomon``."""

from gnomon.tools.cli import main

if __name__ == "__main__":
    main()
