"""A relaying box cannot read what it forwards. Peers exchange a chat line, a file, and all kinds of session data, all
with canaries. Meanwhile an eavesdropper captures all bearers of the box and reads its memory. No canary is visible. A
second run without sealing proves that the capture works. In this run applications send the data, because the commands
send only sealed data."""

import threading

import causeway
from lab import check, main, step, wait_until
from lab.application import Application
from lab.command import chat
from lab.eavesdrop import Capture, find_in_memory
from lab.stage import Stage
from lab.transfer import Transfer

CANARY = b"nightingale at dawn. "
CONTROL = b"blackbird on a roof. "
FILE_BYTES = 256 << 10


def scenario():
    with step("box, bob on Bluetooth LE, carol on Wi-Fi Direct and dave on Ethernet see each other"):
        stage = Stage()
        box, bob, carol, dave = (stage[name] for name in ("box", "bob", "carol", "dave"))
        stage.wait_acquainted()
        capture = Capture(box.box)

    with step("bob and carol chat, dave sends bob a file, both are full of canaries"):
        chat(bob, carol, CANARY.decode() * 8 + ".")
        canaries(dave, bob, CANARY).finish()

    with step("bob invites carol, who declines, and then dave: context, explanation, messages, a stream and a farewell are canaries"):
        session = canaries_of_a_session(bob, carol, dave)

    with step("the listener has seen it all, and who speaks with whom, but no canary") as remark:
        sizes = capture.sizes()
        check(sizes["ip"] > FILE_BYTES and sizes["bluetooth"] > FILE_BYTES, "all was captured", sizes)
        # By the bypass, links do not encrypt sealed frames again. The headers of sealed frames, which name both ends,
        # are therefore visible.
        for bearer, times in capture.find(bytes.fromhex(bob.status()["box"]["id"])).items():
            check(times > 10, f"frames to bob are seen on {bearer}", times)
        for name, canary in (("canary", CANARY), ("id of the session, which its table names", session)):
            check(capture.find(canary) == {"ip": 0, "bluetooth": 0}, f"no {name} on any bearer", capture.find(canary))
        remark(f"{sizes['ip']} bytes of packets, {sizes['bluetooth']} bytes over Bluetooth, no canary")

    with step("the box's memory holds no canary, the receiver's does") as remark:
        at_box, at_bob = (find_in_memory(node.process, CANARY) for node in (box, bob))
        check(at_box == 0, "no canary in the box's memory", at_box)
        check(at_bob > 0, "a canary is found where it may be", at_bob)
        table_at_box, table_at_bob = (find_in_memory(node.process, session) for node in (box, bob))
        check(table_at_box == 0, "no table of the session in the box's memory", table_at_box)
        check(table_at_bob > 0, "a table is found where it may be", table_at_bob)
        remark(f"box 0, bob {at_bob}")

    with step("the same between dave and carol without sealing: the air shows nothing, the box's memory does") as remark:
        for node in (dave, carol):
            node.reconfigure({"peer": {"encryption": "none"}})
            node.restart()
        stage.wait_acquainted()
        ends = [Application(node, unsealed=True) for node in (dave, carol)]
        wait_until("they meet", lambda: ends[0].meets(ends[1:]) and ends[1].meets(ends[:1]), 40, 0.05)
        stream = ends[0].session.open_stream("canaries", ends[1].address)
        stream.write(words(CONTROL), timeout=60)
        stream.finish(timeout=60)
        wait_until("carol has read it", lambda: ends[1].streams, 5, 0.05)
        check(ends[1].streams == [("canaries", words(CONTROL))], "they arrived unaltered")
        at_box = find_in_memory(box.process, CONTROL)
        check(at_box > 0, "what is not sealed, the box can read", at_box)
        check(capture.find(CONTROL)["ip"] == 0, "the links' own encryption hides it from the listener", capture.find(CONTROL))
        remark(f"box {at_box}, listener 0")
    capture.keep()


def canaries_of_a_session(inviter, declines, accepts):
    """Send canaries in everything that a session can carry. Returns the id of the session."""
    canary = CANARY.decode()
    ours, *others = (causeway.Node.connect("canaries", str(node.runtime / "api.sock")) for node in (inviter, declines, accepts))
    services = [other.advertise("canaries") for other in others]
    session = ours.open_session("canaries")
    answers = []
    for node, service, other in zip((declines, accepts), services, others):
        sent = session.invite(service.address, CANARY * 20)
        invitation = service.next(timeout=30)
        check(invitation.context == CANARY * 20, f"{node.name} reads the context", invitation.context)
        if node is declines:
            invitation.decline(canary)
        else:
            guest = other.open_session("canaries")
            threading.Thread(target=read_streams, args=[guest], daemon=True).start()
            invitation.accept(guest)
        answers.append(sent.wait(30))
    check(answers == [(causeway.Outcome.DECLINED, canary), (causeway.Outcome.CONNECTED, "")], "declined, accepted", answers)
    wait_until("they meet", lambda: session.connected() and guest.connected(), 20, 0.05)
    for mode in causeway.Mode:
        session.send(CANARY * 90, mode=mode, timeout=20)
    stream = session.open_stream(canary, session.connected()[0])
    stream.write(CANARY * 1000, timeout=20)
    stream.finish(timeout=20)
    id = session.id
    guest.leave(canary)
    while not isinstance(event := session.next(timeout=20), causeway.Member) or event.state != causeway.State.LEFT:
        pass
    check(event.text == canary, "the farewell is heard", event)
    return id


def read_streams(session):
    for event in session:
        if isinstance(event, causeway.IncomingStream):
            b"".join(event)


def words(canary):
    return canary * (FILE_BYTES // len(canary))


def canaries(sender, receiver, canary):
    """Start the transfer of a file that consists of canaries and has a canary as its name."""
    data = words(canary)
    return Transfer(sender, receiver, len(data), canary.decode().strip() + "txt", data)


main(scenario)
