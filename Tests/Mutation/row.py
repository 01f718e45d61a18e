"""A check that mutate.py disables: file, text, replacement, and the tests that should detect it.

`suite` is "simulator", or the prefix of the names of the unit tests that should fail. `what` names the faulty behaviour."""
import collections

Row = collections.namedtuple("Row", "what file before after suite")

SIMULATOR = "simulator"
