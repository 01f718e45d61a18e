"""A chart of horizontal bars with a logarithmic axis, as SVG."""
import html
import math

LEFT, WIDTH, RIGHT, BAR, GAP, TOP, BOTTOM = 190, 520, 60, 11, 10, 58, 30
COLOURS = ("#1b6ca8", "#e08e0b", "#4c9f70")


def bars(title, series, rows):
    """`rows` maps a label to one positive value for each of the `series`. A vertical line marks the value 1."""
    values = [value for row in rows.values() for value in row]
    low, high = math.floor(min(0, *map(math.log10, values))), math.ceil(max(0.01, *map(math.log10, values)))

    def x(value):
        return LEFT + WIDTH * (math.log10(value) - low) / (high - low)

    height = TOP + len(rows) * (len(series) * BAR + GAP) + BOTTOM
    bottom = height - BOTTOM
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + RIGHT} {height}" font-family="sans-serif" font-size="12">',
           '<rect width="100%" height="100%" fill="white"/>', f'<text x="10" y="20" font-size="15">{html.escape(title)}</text>']
    for number, name in enumerate(series):
        out.append(f'<rect x="{LEFT + 90 * number}" y="32" width="10" height="10" fill="{COLOURS[number]}"/>'
                   f'<text x="{LEFT + 90 * number + 15}" y="41">{html.escape(name)}</text>')
    for power in range(low, high + 1):
        at = x(10**power)
        out.append(f'<line x1="{at:.1f}" y1="{TOP - 8}" x2="{at:.1f}" y2="{bottom}" stroke="{"black" if power == 0 else "#cccccc"}"/>'
                   f'<text x="{at:.1f}" y="{bottom + 16}" text-anchor="middle">{10.0**power:g}</text>')
    y = TOP
    for label, row in rows.items():
        out.append(f'<text x="{LEFT - 8}" y="{y + len(series) * BAR / 2 + 4:.1f}" text-anchor="end">{html.escape(label)}</text>')
        for number, value in enumerate(row):
            from_, to = sorted((x(1), x(value)))
            out.append(f'<rect x="{from_:.1f}" y="{y}" width="{max(to - from_, 1):.1f}" height="{BAR - 1}" fill="{COLOURS[number]}"/>'
                       f'<text x="{to + 4:.1f}" y="{y + BAR - 2}" font-size="10">{float(f"{value:.2g}"):g}</text>')
            y += BAR
        y += GAP
    return "\n".join([*out, "</svg>"]) + "\n"
