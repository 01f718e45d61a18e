"""A photo wall: people nearby send pictures, which appear on a web page as they arrive.

    python3 photowall.py show ~/wall                # on the machine with the screen: http://127.0.0.1:8642/
    python3 photowall.py push beach.jpg cat.png     # on other machines; --to NAME selects one of several walls

The example shows how applications find each other: all of them join one session automatically, and one of them advertises
itself as the wall. The example also shows how to transfer files, and how to treat untrusted data: names are escaped, and only
files that begin as pictures are served.
"""
import argparse
import collections
import functools
import html
import http.server
import os
import pathlib
import re
import sys
import time

from causeway import SOCKET, CausewayError, Node
from resources import STORED, Transfers

PICTURES_MAX, PICTURE_BYTES_MAX = 1_000, 64 << 20
KINDS = {b"\x89PN": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF": "image/gif"}      # key: the first three bytes
SAFETY = (("X-Content-Type-Options", "nosniff"),
          ("Content-Security-Policy", "default-src 'none'; img-src 'self'; style-src 'self'; frame-ancestors 'none'"))
STYLE = pathlib.Path(__file__).resolve().with_name("photowall.css")
PAGE = """<!doctype html><html lang=en><meta charset=utf-8><meta http-equiv=refresh content=2><title>Photo wall</title>
<link rel=stylesheet href=/style.css><h1>{here} pictures, {coming} arriving</h1><p>{people}</p><main>{sheet}</main></html>"""


@functools.lru_cache(PICTURES_MAX)
def kind(path):
    with open(path, "rb") as file:
        return KINDS.get(file.read(3))


class Wall(http.server.ThreadingHTTPServer):
    def __init__(self, session, directory, port):
        super().__init__(("127.0.0.1", port), Handler)
        self.session, self.taken = session, []          # taken: the sender's name, and the transfer
        self.run = f"{time.time_ns():x}"                # the pictures' URLs differ after a restart
        Transfers(session, directory, self.accept).start()

    def accept(self, incoming):
        """Decides on an offer: returns the reason to decline it, or None to accept it."""
        member, pictures = self.session.members.get(incoming.sender), sum(other.count for _, other in self.taken)
        if member is None or pictures + incoming.count > PICTURES_MAX or incoming.bytes > PICTURE_BYTES_MAX * incoming.count:
            return f"the wall accepts at most {PICTURES_MAX} pictures of {PICTURE_BYTES_MAX >> 20} MiB each"
        self.taken.append((member.peer.name, incoming))

    def pictures(self):
        """Yields each picture that is stored or arriving, as its URL path, its sender (name and short id), and its file."""
        for number, (name, incoming) in enumerate(self.taken):
            for index, file in enumerate(incoming.files):
                if os.path.exists(file.path) and kind(file.path) if file.path else incoming.is_running:
                    yield f"/{self.run}/{number}/{index}", (name, incoming.sender.node.hex()[:8]), file

    def page(self):
        sheet, counts, coming = "", collections.Counter(), 0
        for address, who, file in self.pictures():
            part = f"<progress value={file.received} max={file.size}></progress>"
            sheet += f"""<figure>{f'<img src="{address}" alt="">' if file.path else part}
                <figcaption><b>{html.escape(who[0])}</b> {html.escape(file.name)}</figcaption></figure>"""
            counts[who] += bool(file.path)
            coming += not file.path
        people = (f"{html.escape(name)} <small>{id}</small> <b>{count}</b>" for (name, id), count in counts.most_common())
        return PAGE.format(here=counts.total(), coming=coming, people=" · ".join(people), sheet=sheet).encode()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        files = {address: file.path for address, _, file in self.server.pictures()} | {"/style.css": STYLE}
        # Without this check, a page of another site could use DNS rebinding to read the wall under that site's host name.
        if not re.fullmatch(r"(127\.0\.0\.1|localhost)(:\d+)?", self.headers.get("Host", "")):
            self.send_error(421)
        elif self.path == "/":
            self.answer("text/html; charset=utf-8", self.server.page(), "no-store")
        elif path := files.get(self.path):
            self.answer(kind(path) or "text/css", pathlib.Path(path).read_bytes(), "max-age=86400")
        else:
            self.send_error(404)

    def answer(self, kind, body, cache):
        self.send_response(200)
        for header in ("Content-Type", kind), ("Content-Length", len(body)), ("Cache-Control", cache), *SAFETY:
            self.send_header(*header)
        self.end_headers()
        self.wfile.write(body)

    log_message = lambda *_: None


def show(options):
    os.makedirs(options.paths[0], exist_ok=True)
    node = Node.connect("photowall", options.socket)
    wall = Wall(node.gather("photowall", {"wall": "yes"}, members_max=64), options.paths[0], options.port)
    print(f"http://127.0.0.1:{wall.server_port}/", flush=True)
    wall.serve_forever()


def push(options):
    node = Node.connect(f"photowall {os.getpid()}", options.socket)
    transfers = Transfers(node.gather("photowall", members_max=64)).start()
    for sighting in node.browse("photowall"):
        if sighting.kind == "found" and "wall" in sighting.info and options.to in (None, sighting.peer.name):
            stored = transfers.send(options.paths, sighting.address).count(STORED)
            print(f"{stored} of {len(options.paths)} pictures are on the wall of {sighting.peer.name}")
            return stored < len(options.paths)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["show", "push"])
    parser.add_argument("paths", nargs="+", metavar="path")
    parser.add_argument("--to", help="the name of the wall's box")
    parser.add_argument("--port", type=int, default=8642)
    parser.add_argument("--socket", default=SOCKET)
    options = parser.parse_args()
    try:
        sys.exit(show(options) if options.what == "show" else push(options))
    except (CausewayError, OSError, KeyboardInterrupt) as error:
        sys.exit(f"photowall: {error}")


if __name__ == "__main__":
    main()
