#!/usr/bin/env python3
"""Draws the picture of the README: python3 docs/images/causeway.py > docs/images/causeway.svg

Needs only the standard library. Every text lies on a filled shape, so the picture is legible on a light and on a dark page."""
import html

WIDTH, HEIGHT = 880, 362
INK, PALE, EDGE, LINE, SEAL, SEALED = "#1b2631", "#eef2f6", "#5d6d7e", "#85929e", "#1e8449", "#d5f0e0"

# name: left, top, width, height, lines of text
SHAPES = {
    "Raspberry Pi": (20, 113, 130, 74, ["Raspberry Pi"]),
    "laptop": (750, 33, 110, 74, ["laptop"]),
    "desktop": (750, 193, 110, 74, ["desktop"]),
    "box": (345, 83, 190, 134, ["Causeway box", "relays sealed frames", "that it cannot read"]),
}
# from, to, height at the box, bearer, whether the sealed frame of the example takes this link
LINKS = [
    ("Raspberry Pi", "box", 150, "Bluetooth LE", True),
    ("box", "laptop", 115, "Wi-Fi Direct", False),
    ("box", "desktop", 185, "Ethernet", True),
]
# left, width, lines of text, whether the part is sealed: the parts of a frame on its way from the Raspberry Pi to the desktop
FRAME = [
    (150, 250, ["source, destination, length", "the box reads them"], False),
    (400, 330, ["payload", "only the two ends can read it"], True),
]


def rectangle(left, top, width, height, fill, edge, radius=8):
    return (f'<rect x="{left:g}" y="{top:g}" width="{width}" height="{height}" rx="{radius}" fill="{fill}" '
            f'stroke="{edge}" stroke-width="2"/>')


def text(x, y, lines, size):
    """Lines of text around the point, the first one bold."""
    top = y + size / 3 - (size + 7) * (len(lines) - 1) / 2
    return "".join(f'<text x="{x:g}" y="{top + (size + 7) * number:g}" font-size="{size}" fill="{INK}" text-anchor="middle" '
                   f'font-weight="{"normal" if number else "bold"}">{html.escape(words)}</text>' for number, words in enumerate(lines))


def lock(x, y):
    """A closed padlock around the point."""
    return (f'<path d="M{x - 4:g} {y - 1:g} v-4 a4 4 0 0 1 8 0 v4" fill="none" stroke="{SEAL}" stroke-width="2"/>'
            f'<rect x="{x - 7:g}" y="{y - 1:g}" width="14" height="10" rx="2" fill="{SEAL}"/>')


def link(start, end, height, bearer, is_sealed):
    """A line from the right side of one shape to the left side of the other, with its bearer in the middle."""
    (left, top, width, tall, _), (x2, top2, _, tall2, _) = SHAPES[start], SHAPES[end]
    x1, y1, y2 = left + width, top + tall / 2, top2 + tall2 / 2
    y1, y2 = (y1, height) if end == "box" else (height, y2)
    out = [f'<line x1="{x1}" y1="{y1:g}" x2="{x2}" y2="{y2:g}" stroke="{SEAL if is_sealed else LINE}" stroke-width="4"/>']
    if is_sealed:
        x, y = x1 + (x2 - x1) * 0.12, y1 + (y2 - y1) * 0.12
        out += [f'<circle cx="{x:g}" cy="{y:g}" r="14" fill="{SEALED}" stroke="{SEAL}" stroke-width="2"/>', lock(x, y - 1)]
    x, y, wide = x1 + (x2 - x1) * 0.56, y1 + (y2 - y1) * 0.56, 9 * len(bearer) + 20
    return "".join([*out, rectangle(x - wide / 2, y - 14, wide, 28, PALE, EDGE, 14), text(x, y, [bearer], 14)])


def picture():
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif">',
           "<title>A Raspberry Pi on Bluetooth, a laptop on Wi-Fi Direct and a desktop on Ethernet communicate through a Causeway box.</title>"]
    out += [link(*each) for each in LINKS]
    for left, top, width, height, lines in SHAPES.values():
        out += [rectangle(left, top, width, height, PALE, EDGE), text(left + width / 2, top + height / 2, lines, 16)]
    for left, width, lines, is_sealed in FRAME:
        out += [rectangle(left, 290, width, 56, *((SEALED, SEAL) if is_sealed else (PALE, EDGE)), 3), text(left + width / 2, 318, lines, 14)]
        out += [lock(left + width / 2 - 48, 305)] if is_sealed else []
    return "\n".join([*out, "</svg>"])


print(picture())
