"""A mutation, which disables one check: in `file`, the text `before` is replaced by `after`. See mutate.py.

`suite` is "simulator", or the prefix of the names of the unit tests that should fail. `what` names the faulty behaviour."""
import collections

Row = collections.namedtuple("Row", "what file before after suite")

SIMULATOR = "simulator"
