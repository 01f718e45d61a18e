"""A program, bystander.py SOCKET: an application that a scenario can stop. It joins the scenario's applications by
auto-join. It prints its endpoint, and then each received message in a line."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

import causeway

session = causeway.Node.connect("bystander", sys.argv[1]).gather("story", {"name": "bystander"})
print(session.address.endpoint, flush=True)
for event in session:
    if isinstance(event, causeway.Message):
        print(event.data.decode(), flush=True)
