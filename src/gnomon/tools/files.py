"""Files that are either whole or not there."""

import os
import secrets
from contextlib import suppress
from pathlib import Path


def write_atomically(path, *chunks) -> Path:
    """Write bytes to a temporary file beside ``path``, then rename it over ``path``.

    After a crash or on a full disk the old file is still there, and no other is left behind.
    """
    path = Path(path)
    temporary = path.parent / f".{path.name}.{secrets.token_hex(8)}"
    try:
        with open(temporary, "xb") as file:
            file.writelines(chunks)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_directory(path.parent)
    return path


def _sync_directory(folder):
    """Make the rename itself durable, where the system can open a directory."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
