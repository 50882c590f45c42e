"""Files that are either whole or not there."""

import os
import secrets
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def atomic_file(path):
    """A binary file that takes the place of ``path`` when the block ends without an error.

    After a crash or on a full disk the old file is still there, and no other is left behind.
    """
    path = Path(path)
    temporary = path.parent / f".{path.name}.{secrets.token_hex(8)}"
    try:
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and str(error.filename) == str(temporary):
            error.filename = str(path)
        raise
    _sync_directory(path.parent)


def write_atomically(path, content: bytes) -> Path:
    """Write a file whole or not at all."""
    with atomic_file(path) as file:
        file.write(content)
    return Path(path)


def _sync_directory(folder):
    """Make the rename itself durable, where the system can open a directory."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
