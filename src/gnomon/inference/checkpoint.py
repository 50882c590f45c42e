"""A state to a file and back: an interrupted loop goes on, to the bit, where it stopped.

A state is nested named tuples, tuples, arrays and numbers. The file is NumPy's npz without
pickles: one array per leaf, the objective so far, and a fingerprint of the problem. It is
written beside its place and moved there, so that a crash leaves the old file or the new one.
"""

import errno
import glob
import hashlib
import os
import secrets
import stat
import time
from collections.abc import Iterable
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

# Number of the layout of the file; another one is refused.
FORMAT = 1
HEADER = ("format", "fingerprint", "objective")
# Errors of a write that do not say which file it was: a full disk, a quota, a limit on sizes.
NO_ROOM = (errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC))
# Bytes of the random part of a temporary name: two processes never choose the same.
TOKEN = 8
# Seconds in which a file that another process has made may not be locked yet.
NEW = 2.0


class Saved(NamedTuple):
    """What a checkpoint holds."""

    state: Any
    objective: list[float]


def save(path, state, objective, fingerprint: str) -> None:
    """Write the state after ``len(objective)`` iterations, atomically."""
    arrays: dict[str, Any] = {f"leaf{i}": leaf for i, leaf in enumerate(leaves(state))}
    arrays |= {"format": FORMAT, "fingerprint": fingerprint, "objective": np.array(objective)}
    with atomic_file(path) as file:
        np.savez(file, **arrays)


def load(path, like, fingerprint: str) -> Saved:
    """Read a state with the structure of ``like``; refuse another problem or a damaged file."""
    names = [f"leaf{i}" for i, _ in enumerate(leaves(like))]
    with Path(path).open("rb") as file:
        try:
            with np.load(file, allow_pickle=False) as members:
                arrays = {name: members[name] for name in [*names, *HEADER]}
        # A damaged archive fails in as many ways as it has parts.
        except Exception as error:
            raise ValueError(f"checkpoint {str(path)!r} is damaged or not a checkpoint") from error
    if str(arrays["fingerprint"]) != fingerprint or int(arrays["format"]) != FORMAT:
        raise ValueError(
            f"checkpoint {str(path)!r} belongs to other data, parameters, another start or "
            "version (data are rows, outputs, weights and links, in their order); remove it or "
            "give another path; a random start needs a random_state"
        )
    values = (arrays[name] for name in names)
    return Saved(_rebuild(like, values), arrays["objective"].tolist())


def fingerprint(parts: Iterable) -> str:
    """A digest of arrays, one at a time, of functions by name, of all else by its repr."""
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray) and part.dtype != object:
            digest.update(f"{part.dtype}{part.shape}".encode())
            digest.update(np.ascontiguousarray(part).view(np.uint8).data)
        else:
            digest.update(str(getattr(part, "__qualname__", repr(part))).encode())
    return digest.hexdigest()


def leaves(state):
    """The arrays and numbers of nested tuples, in order."""
    if isinstance(state, tuple | list):
        for part in state:
            yield from leaves(part)
    elif state is not None:
        yield state


def _rebuild(like, values):
    if isinstance(like, tuple) and hasattr(like, "_fields"):
        return type(like)(*(_rebuild(part, values) for part in like))
    if isinstance(like, tuple | list):
        return type(like)(_rebuild(part, values) for part in like)
    if like is None:
        return None
    value = next(values)
    return value if isinstance(like, np.ndarray) else type(like)(value)


@contextmanager
def atomic_file(path):
    """A binary file that takes the place of ``path`` when the block ends without an error.

    After a crash or on a full disk the old file is still there, and no other is left behind; what
    a kill leaves is removed by the next write. The rights of the old file stay, and a symbolic
    link stays one. A device or a pipe is written to as it is.
    """
    place = Path(os.path.realpath(path))
    old = place.stat() if place.exists() else None
    if old is not None and not stat.S_ISREG(old.st_mode):
        with open(place, "wb") as file:
            yield file
        return
    _remove_leftovers(place)
    temporary = place.parent / f".{place.name}.{secrets.token_hex(TOKEN)}"
    try:
        with open(temporary, "xb", opener=None if old is None else _private) as file, _held(file):
            yield file
            file.flush()
            _take_rights(temporary, old)
            os.fsync(file.fileno())
            if os.name == "posix":
                os.replace(temporary, place)
        if os.name != "posix":
            os.replace(temporary, place)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and (
            str(error.filename) == str(temporary) or error.errno in NO_ROOM
        ):
            error.filename = str(path)
        raise
    _sync_directory(place.parent)


def _private(name, flags):
    return os.open(name, flags, 0o600)


def _take_rights(temporary, old):
    """Give a file the rights of the one that it replaces, and its owner where that is allowed."""
    if old is not None:
        with suppress(OSError, AttributeError):
            os.chown(temporary, old.st_uid, old.st_gid)
        os.chmod(temporary, stat.S_IMODE(old.st_mode))


@contextmanager
def _held(file):
    """A lock on a file while it is written, by which others know that somebody does."""
    with suppress(OSError):
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX)
    yield


def _remove_leftovers(place):
    """Remove what a killed process left beside a file: it is not new, and nobody holds its lock."""
    pattern = f".{glob.escape(place.name)}.{'[0-9a-f]' * 2 * TOKEN}"
    for leftover in glob.glob(pattern, root_dir=place.parent, include_hidden=True):
        with suppress(OSError):
            status = (place.parent / leftover).lstat()
            is_old = status.st_mtime < time.time() - NEW
            if fcntl is not None and is_old and stat.S_ISREG(status.st_mode):
                with open(place.parent / leftover, "rb", opener=_at_once) as file:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    os.unlink(place.parent / leftover)


def _at_once(name, flags):
    """Open without waiting, as a pipe would make one."""
    return os.open(name, flags | os.O_NONBLOCK)


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
