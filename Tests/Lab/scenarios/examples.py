"""The examples in Python over three radios. bob on Bluetooth LE, carol on Wi-Fi Direct and dave on Ethernet each send a
picture to a photo wall at the box. The wall's web page shows the pictures. Metronomes of bob and dave synchronise their
clocks through the box."""
# seconds: 90

import os
import re
import time
import urllib.parse

from lab import check, main, say, step, wait_until
from lab.stage import Stage

PICTURE_BYTES = 40_000
PNG = b"\x89PNG\r\n\x1a\n"
BEATS = 24
FETCH = "import sys, urllib.request as r; a = r.urlopen(sys.argv[1]); print(a.headers['Content-Type'], a.read().{})"
SENDERS = {"bob": "Bluetooth LE", "carol": "Wi-Fi Direct", "dave": "Ethernet"}


def start(node, example, *words):
    return node.box.spawn(example, "python3", f"/lab/{example}.py", *words, "--socket", node.runtime / "api.sock")


def fetch(box, address, how):
    return box.run("python3", "-c", FETCH.format(how), address)


def scenario():
    with step("a box, and three peers of which no two share a radio"):
        stage = Stage()
        stage.wait_acquainted(90)

    with step("a photo wall at the box; everybody pushes a picture") as remark:
        wall = start(stage["box"], "photowall", "show", "/tmp/wall")
        address = wait_until("the wall has an address", lambda: re.search(r"http://\S+", wall.output()), 20)[0]
        pictures, pushers, took = {}, {}, {}
        began = time.monotonic()
        for name in SENDERS:
            os.makedirs(f"/tmp/{name}")
            pictures[name] = PNG + os.urandom(PICTURE_BYTES)
            with open(f"/tmp/{name}/{name}'s.png", "wb") as file:
                file.write(pictures[name])
            pushers[name] = start(stage[name], "photowall", "push", file.name)

        def ended():
            for name, process in pushers.items():
                if name not in took and not process.is_running():
                    took[name] = time.monotonic() - began
                    check(process.wait() == 0, f"{name}'s picture is on the wall", process.output())
            return len(took) == len(pushers)

        wait_until("all pictures are on the wall", ended, 90)
        remark(", ".join(f"{name} over {SENDERS[name]} after {took[name]:.1f} s" for name in SENDERS))

    with step("its page shows who sent what, and the pictures as they were sent"):
        page = fetch(stage.boxes["box"], address, "decode()")
        check("<h1>3 pictures, 0 arriving</h1>" in page, "three pictures", page)
        shown = re.findall(r'src="/(.*?)".*?<b>(\w+)</b> (\S+?)<', page, re.DOTALL)
        check({(name, file) for _, name, file in shown} == {(name, f"{name}&#x27;s.png") for name in SENDERS}, "of all three", shown)
        for place, name, _ in shown:
            answer = fetch(stage.boxes["box"], urllib.parse.urljoin(address, place), "hex()")
            check(answer == f"image/png {pictures[name].hex()}", f"{name}'s picture, bit by bit")
        wall.terminate()

    with step("metronomes on Bluetooth and Ethernet tick together") as remark:
        both = {name: start(stage[name], "metronome", "--every", "0.5", "--beats", BEATS, "--ahead", ahead)
                for name, ahead in (("bob", "0"), ("dave", "100"))}
        for name, process in both.items():
            check(process.wait(90) == 0, f"{name}'s metronome has ended", process.output())
        beats = {name: re.findall(r"beat (\d+): skew (\S+) s, at most (\S+) ms wrong \(round trip (\S+) ms", process.output())
                 for name, process in both.items()}
        follower, = [name for name in beats if beats[name]]
        true = 100 if follower == "dave" else -100
        for _, skew, bound, _ in beats[follower]:
            check(abs(float(skew) - true) <= float(bound) / 1e3 + 2e-6, "the skew is within its bound", (skew, bound))
        _, skew, bound, trip = beats[follower][-1]
        remark(f"{len(beats[follower])} beats; {abs(float(skew) - true) * 1e3:.1f} ms wrong, by its own word at most {bound} ms, "
               f"round trip {trip} ms")
        for line in both[follower].lines()[-2:]:
            say(f"             {follower}: {line}")


main(scenario)
