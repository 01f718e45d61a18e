"""Puts many mutations into one build.

A row is one mutation. In the copy of the project, the body of a function that rows change occurs once for each of these rows,
and once unchanged. The environment variable CAUSEWAY_MUTATION selects the variant that runs. So the project is built once, and
not once for each row. Only changes outside of functions, or in C, need separate builds.
"""
import collections
import re

VARIABLE = "CAUSEWAY_MUTATION"
NUMBER = "mutationInForce"
# Each module has this declaration of its own, because the module's inlinable functions must be able to use it.
DECLARATION = f"""import Glibc

@usableFromInline let {NUMBER} = getenv("{VARIABLE}").map {{ Int(atoi($0)) }} ?? 0
"""
MODIFIERS = r"(?:public|private|fileprivate|internal|package|static|mutating|nonmutating|final|override|borrowing|consuming|convenience|nonisolated)"
# The sources are formatted by `swift format`: the brace that ends a body has the indentation of the declaration.
FUNCTION = re.compile(rf"\s*(?:@\w+(?:\([^)]*\))?\s+)*(?:{MODIFIERS}(?:\(\w+\))?\s+)*(?:(?:func|subscript)\b|(?:init|deinit)\b(?!\s*=)|var [^=]*{{)")
ACCESSOR = re.compile(r"\s*(?:mutating |nonmutating )?(?:get|set|didSet|willSet|_read|_modify)(?: throws\(\w+\))? \{")

# A compiler error in these `lines` of a composed file (the first is 1) is caused by one of the rows with these `numbers`.
Place = collections.namedtuple("Place", "lines numbers")


def indentation(line):
    return len(line) - len(line.lstrip(" "))


def changed(row):
    """Where `before` and `after` of a row differ: (number of equal characters at the front, number of equal characters at the
    end)."""
    before, after = row.before, row.after
    least = min(len(before), len(after))
    front = next((i for i in range(least) if before[i] != after[i]), least)
    behind = next((i for i in range(least - front) if before[-1 - i] != after[-1 - i]), least - front)
    return front, behind


def body(text, start, end):
    """The body of the innermost function that contains the characters from `start` to `end`. Returns the offsets of the body
    without its braces, (first, last), or None."""
    lines = text.split("\n")
    offsets = [0]
    for line in lines:
        offsets.append(offsets[-1] + len(line) + 1)
    at = text.count("\n", 0, start)
    for number in range(at, -1, -1):
        line = lines[number]
        if not FUNCTION.match(line) and not ACCESSOR.match(line):
            continue
        if line.rstrip().endswith("}") and "{" in line:
            first, last = offsets[number] + line.index("{") + 1, offsets[number] + line.rindex("}")
        else:
            level = indentation(line)
            head = next((i for i in range(number, len(lines)) if lines[i].endswith("{") and indentation(lines[i]) == level), None)
            if head is None:
                continue
            foot = next((i for i in range(head + 1, len(lines)) if lines[i] and indentation(lines[i]) <= level), None)
            if foot is None or lines[foot] != " " * level + "}" or ACCESSOR.match(lines[head + 1]):
                continue
            first, last = offsets[head + 1] - 1, offsets[foot]
        if first <= start and end <= last:
            return first, last
    return None


def compose(text, rows):
    """Compose a file that contains all of these rows, {number: row}. Returns (text, places, numbers of the rows outside of
    functions)."""
    bodies, left = {}, set()
    for number, row in rows.items():
        place = text.index(row.before)
        front, behind = changed(row)
        span = body(text, place + front, place + len(row.before) - behind)
        if span is None:
            left.add(number)
        else:
            bodies.setdefault(span, []).append(number)
    for span in sorted(bodies, key=lambda span: span[1] - span[0]):
        outer = next((other for other in bodies if other != span and other[0] <= span[0] and span[1] <= other[1]), None)
        if outer is not None:
            bodies[outer] += bodies.pop(span)
    result, places, done = "", [], 0
    for (start, end), numbers in sorted(bodies.items()):
        result += text[done:start]
        first = result.count("\n") + 1
        for number in numbers:
            row, line = rows[number], result.count("\n") + 1
            place = text.index(row.before)
            whole = text[:place] + row.after + text[place + len(row.before):]
            result += f" if {NUMBER} == {number} {{{whole[start:end + len(whole) - len(text)]}}} else"
            places.append(Place(range(line, result.count("\n") + 2), [number]))
        result += f" {{{text[start:end]}}} "
        places.append(Place(range(first, result.count("\n") + 2), numbers))
        done = end
    return result + text[done:], places, left
