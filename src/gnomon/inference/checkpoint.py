"""A state to a file and back: an interrupted loop goes on, to the bit, where it stopped.

A state is nested named tuples, tuples, arrays and numbers. The file is NumPy's npz without
pickles: one array per leaf, the objective so far, and a fingerprint of the problem. It is
written beside its place and moved there, so that a crash leaves the old file or the new one.
"""

import hashlib
import os
import secrets
from collections.abc import Iterable
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

# Number of the layout of the file; another one is refused.
FORMAT = 1
HEADER = ("format", "fingerprint", "objective")


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
