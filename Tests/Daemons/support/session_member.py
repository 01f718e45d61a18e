"""An application in its own process, which a test can stop and kill: session_member.py SOCKET NAME

It offers the service “story”, accepts each invitation into one session, and prints one line per event."""
import sys
import threading

from causeway import Ended, Member, Message, Node


def main():
    node = Node.connect(sys.argv[2], sys.argv[1])
    session, invitations = node.open_session("story"), node.advertise("story", {"name": sys.argv[2]})

    def accept():
        for invitation in invitations:
            invitation.accept(session)

    threading.Thread(target=accept, daemon=True).start()
    print("ready", flush=True)
    for event in session:
        match event:
            case Member():
                print("member", event.state.name if hasattr(event.state, "name") else event.state, flush=True)
            case Message():
                print("message", event.data[:8].hex(), len(event.data), flush=True)
            case Ended():
                print("ended", flush=True)


if __name__ == "__main__":
    main()
