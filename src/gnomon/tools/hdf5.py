"""What an HDF5 file holds, before anything trusts it: ``python hdf5.py FILE MOST SECONDS``.

The library HDF5 trusts its files. Of those with a bit turned, some kill the process that reads
them and some keep it for ever. So a process that can be spared comes first and reads what lies in
heaps of the file: attributes and texts. It ends after so many seconds of work, where the system
can count these, and prints the bytes that all arrays take, also those that were never written, or
why the file is refused: what lies in other files would be read with the rights of whoever opens
this one, and what is there twice makes a small file large.
"""

import math
import sys
from contextlib import suppress

# Texts that are read at a time, where they are only counted.
PIECE = 10**5


def main(path, most, seconds):
    """Print the bytes of a file, counted until they are more than the most."""
    import h5py

    with suppress(ImportError):
        import resource

        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds) + 1))
    try:
        with h5py.File(path, "r") as file:
            print(size_of(file, float(most)))
    except Exception as error:
        sys.exit(" ".join(str(error).split()) or type(error).__name__)


def size_of(file, most):
    """The bytes of all arrays in memory; texts are counted only if the rest is not too much."""
    items = list(everything(file))
    for item in items:
        dict(item.attrs)
    arrays = [item for item in items if hasattr(item, "dtype") and item.shape is not None]
    size = sum(math.prod(array.shape) * array.dtype.itemsize for array in arrays)
    for array in arrays:
        if array.dtype.hasobject and array.shape:
            size += size_of_texts(array, most - size)
    return size


def everything(file):
    """The file, its groups and its arrays, each once; a file that holds one twice is refused."""
    waiting, known = [file], set()
    while waiting:
        item = waiting.pop()
        place = _place(item)
        if place in known:
            raise ValueError(f"{item.name!r} is there under two names")
        known.add(place)
        yield item
        waiting += [_child(item, name) for name in item] if hasattr(item, "keys") else []


def _place(item):
    from h5py import h5o

    return h5o.get_info(item.id).addr


def _child(group, name):
    """What a group holds under a name, if it lies in this file."""
    import h5py

    item = group[name] if isinstance(group.get(name, getlink=True), h5py.HardLink) else None
    if item is None or getattr(item, "external", None) or getattr(item, "is_virtual", False):
        raise ValueError(f"{name!r} of {group.name!r} leads elsewhere")
    return item


def size_of_texts(array, most):
    """The bytes of texts of any length, counted until they are more than the most."""
    size = 0
    for start in range(0, len(array), PIECE):
        if size > most:
            break
        size += sum(_length(text) for text in array[start : start + PIECE].ravel())
    return size


def _length(text):
    return len(text) if hasattr(text, "__len__") else 0


if __name__ == "__main__":
    main(*sys.argv[1:])
