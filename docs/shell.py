"""Run a command of a guide and print it with what it says, as a terminal would show both."""

import os
import shlex
import subprocess

# What the kernel of a notebook sets, so that programs take its output for a terminal.
COLOURS = ("FORCE_COLOR", "CLICOLOR_FORCE", "CLICOLOR")


def run(command: str) -> None:
    """Print a command, run it, print its output; an error stops the page."""
    environment = {name: value for name, value in os.environ.items() if name not in COLOURS}
    both = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    words = shlex.split(command)  # of a page of ours
    done = subprocess.run(words, check=True, env=environment, **both)  # noqa: S603
    print(f"$ {command}\n{done.stdout.rstrip()}")
