"""A check that mutate.py disables: file, text, replacement, and the tests that should detect it.

`suite` is "simulator", or what the names of the unit tests that should turn red begin with.
"""
import collections

Row = collections.namedtuple("Row", "what file before after suite")

SIMULATOR = "simulator"
