"""How much a file may become: a few kilobytes that unpack to gigabytes are refused."""

import zipfile

import pyarrow as pa

from gnomon.exceptions import TableError

COMPRESSED = (".gz", ".bz2", ".zst")
# What grows to no more than this is read however well it was compressed: it does no harm.
HARMLESS = 2**30
# Bytes that are unpacked at a time where they are only counted.
PIECE = 2**23


def check_growth(path, grown, max_growth):
    """Refuse a file that becomes much more in memory than it is on disk, unless that is little."""
    if grown > most_bytes(path, max_growth):
        raise TableError(
            f"{path} would grow to {grown:,} bytes, more than {max_growth:g} times its own; if it "
            "is known and that fits in memory, say --max-growth with a larger number"
        )


def size_of_zip(path, max_growth) -> int:
    """The bytes that an archive says it unpacks to, if they are not too many."""
    with zipfile.ZipFile(path) as archive:
        grown = sum(member.file_size for member in archive.infolist())
    check_growth(path, grown, max_growth)
    return grown


def size_of_packed(path, max_growth) -> int:
    """The bytes of a compressed text file when it is unpacked, if they are not too many."""
    most, grown = most_bytes(path, max_growth), 0
    with pa.input_stream(str(path), compression="detect") as stream:
        while grown <= most and (piece := len(stream.read(PIECE))):
            grown += piece
    check_growth(path, grown, max_growth)
    return grown


def most_bytes(path, max_growth):
    """What a file may become without being refused."""
    return max(HARMLESS, max_growth * path.stat().st_size)
