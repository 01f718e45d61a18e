"""Reads the writes to a card that QEMU's driver blklogwrites recorded, in the format of the kernel's dm-log-writes."""
import struct

SUPER = struct.Struct("<QQQI")  # Header: magic number, version, number of entries, bytes of a sector.
ENTRY = struct.Struct("<QQQQ")  # Entry: first sector, number of sectors, flags, bytes of data.
MAGIC, DISCARD, MARK = 0x6A736677736872, 4, 8


def writes(path):
    """Yield the writes of a log in their order, each as the offset on the card and the bytes."""
    with open(path, "rb") as log:
        magic, version, entries, sector = SUPER.unpack(log.read(SUPER.size))
        if (magic, version) != (MAGIC, 1):
            raise ValueError(f"{path} is no log of writes")
        place = sector
        while True:
            log.seek(place)
            header = log.read(ENTRY.size)
            if len(header) < ENTRY.size:
                return
            start, count, flags, _ = ENTRY.unpack(header)
            if count == 0 and flags & ~0xF:
                return
            place += sector
            if count and not flags & (DISCARD | MARK):
                log.seek(place)
                yield start * sector, log.read(count * sector)
                place += count * sector
