#!/usr/bin/env python3
"""cut_section.py OBJECT SECTION PREFIX: ends a section of an ELF object at its first symbol with that prefix.

Fails unless these symbols are the last ones of the section. References to them then point to the data that the linker places behind
the section, so no code may read them. (llvm-objcopy --update-section loses the section's symbols when its size changes.)"""
import struct
import sys

HEADER_SIZE, SYMBOL_SIZE = 64, 24
SECTION = struct.Struct("<IIQQQQIIQQ")  # Name, type, flags, address, offset, size, link, information, alignment, size of an entry.
SYMBOL = struct.Struct("<IBBHQQ")  # Name, type and binding, visibility, section, value, size.
SYMBOL_TABLE = 2


def text(data, table, offset):
    start = table[4] + offset
    return data[start:data.index(0, start)].decode()


def main(path, name, prefix):
    data = bytearray(open(path, "rb").read())
    if data[:6] != b"\x7fELF\x02\x01":
        sys.exit(f"cut_section: {path} is no little-endian 64-bit ELF object")
    place, = struct.unpack_from("<Q", data, 40)
    count, names = struct.unpack_from("<HH", data, 60)
    sections = [SECTION.unpack_from(data, place + HEADER_SIZE * index) for index in range(count)]
    found = [index for index in range(count) if text(data, sections[names], sections[index][0]) == name]
    tables = [section for section in sections if section[1] == SYMBOL_TABLE]
    if len(found) != 1 or len(tables) != 1:
        sys.exit(f"cut_section: {path} has not one section {name} and one table of symbols")
    table, = tables
    symbols = [SYMBOL.unpack_from(data, table[4] + offset) for offset in range(0, table[5], SYMBOL_SIZE)]
    mine = [(symbol[4], symbol[4] + symbol[5], text(data, sections[table[6]], symbol[0])) for symbol in symbols if symbol[3] == found[0]]
    cut = min((start for start, _, symbol in mine if symbol.startswith(prefix)), default=None)
    if cut is None or any(end > cut and not symbol.startswith(prefix) for _, end, symbol in mine):
        sys.exit(f"cut_section: {name} of {path} does not end with {prefix}…")
    struct.pack_into("<Q", data, place + HEADER_SIZE * found[0] + 32, cut)
    open(path, "wb").write(data)


main(*sys.argv[1:])
