"""The writes to a card in order, as QEMU's driver blklogwrites recorded them (the format of the kernel's dm-log-writes)."""
import struct

SUPER = struct.Struct("<QQQI")  # Magic number, version, entries, bytes of a sector.
ENTRY = struct.Struct("<QQQQ")  # Sector, sectors, flags, bytes that follow.
MAGIC, DISCARD, MARK = 0x6A736677736872, 4, 8


def writes(path):
    """The writes of a log in order: offset and bytes."""
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
