"""Updates that a board must refuse, and the reasons of the refusals."""
import subprocess

from bundles import BLOCK, Bundle, Signer

NEWER = "9.0.0"

# Files that no update contains. On FAT, which holds a slot's directory, the first five names equal the slot's command line.
UNEXPECTED_FILES = {
    "cmdline.txt": "a-command-line",
    "CMDLINE.TXT": "a-command-line-in-capital-letters",
    "Cmdline.txt": "a-command-line-with-a-capital-letter",
    "cmdline.txt.": "a-command-line-and-a-dot",
    "cmdline.txt ": "a-command-line-and-a-blank",
    "KERNEL.GZ": "a-second-kernel",
    "kernel.gz ": "a-kernel-and-a-blank",
    "config.txt": "a-choice-of-the-slot",
    ".hidden": "a-hidden-file",
    "a b.dtb": "a-blank-in-a-device-tree",
    "cmdline.txt.dtb": "a-command-line-that-ends-as-a-device-tree",
    "UPPER.dtb": "a-device-tree-in-capital-letters",
}
# Entries of a bundle that are not regular files. A value is the entry's name and its pseudo-file definition for mksquashfs.
NO_REGULAR_FILES = {
    "a-link-for-a-kernel": ("kernel.gz", "s 777 0 0 /usr/bin/busybox"),
    "a-link-for-a-kernel-within": ("kernel.gz", "s 777 0 0 initrd"),
    "a-link-for-a-slot": ("slot.img", "s 777 0 0 /usr/bin/busybox"),
    "a-link-to-a-device-for-a-slot": ("slot.img", "s 777 0 0 /dev/causeway-slot-a"),
    "a-directory": ("boot", "d 755 0 0"),
    "a-link-to-a-directory": ("boot", "s 777 0 0 /etc"),
    "a-device-for-an-initial-ram-disk": ("initrd", "c 600 0 0 1 5"),
    "a-device-tree-that-is-a-link": ("board.dtb", "s 777 0 0 /etc/shadow"),
}


def exchanged(data, place):
    """A copy of the bytes in which the byte at `place` is changed."""
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1:]


def false_updates(maker):
    """Yield the path of each false update, and a part of the message that refuses it. No false update may change the card."""
    stranger = Signer.new(maker.directory, "stranger")
    good = maker.make("good.update", NEWER).read_bytes()
    own = Bundle(good)
    foreign_path = maker.make("signed-by-a-stranger", NEWER, signer=stranger)
    foreign = Bundle(foreign_path.read_bytes())
    unsigned, broken = "not signed by a key that this image trusts", "damaged"

    def files():
        yield "bytes-behind-its-end", good + bytes(BLOCK), broken
        yield "one-byte-behind-its-end", good + b"\0", broken
        yield "bytes-behind-its-payload", own.data(payload=own.payload + bytes(BLOCK)), broken
        yield "bytes-before-its-payload", own.data(payload=bytes(BLOCK) + own.payload), broken
        yield "a-changed-block", own.data(payload=exchanged(own.payload, 100)), broken
        yield "a-changed-hash-tree", own.data(payload=exchanged(own.payload, len(own.payload) - BLOCK)), broken
        yield "a-payload-cut-short", own.data(payload=own.payload[BLOCK:]), broken
        yield "a-payload-that-was-never-signed", own.data(payload=foreign.payload), broken
        # In this case the payload is not a multiple of RAUC's block size, so RAUC's service exits.
        yield "a-stranger-s-update-before-it", foreign.data() + good, "RAUC stopped without a result"
        yield "a-stranger-s-update-behind-it", good + foreign.data(), unsigned
        yield "a-stranger-s-signature", own.data(signature=foreign.signature), unsigned
        yield "a-changed-signature", own.data(signature=exchanged(own.signature, len(own.signature) - 4)), unsigned
        yield "a-changed-manifest", own.data(signature=own.signature.replace(NEWER.encode(), b"9.0.1")), unsigned
        yield "two-signatures", own.data(signature=foreign.signature + own.signature), unsigned
        yield "no-signature", own.data(signature=b""), broken
        yield "a-signature-of-all-its-bytes", own.data(length=len(own.payload) + len(own.signature)), broken
        yield "a-signature-longer-than-itself", own.data(length=2**64 - 1), broken
        yield "cut-short", good[:-1], broken
        yield "eight-bytes", good[-8:], broken
        yield "nothing", b"", broken
        yield "zeros", bytes(100 * BLOCK), broken

    for name, data, reason in files():
        yield maker.write(name, data), reason
    yield foreign_path, unsigned
    yield archive(maker, good), broken
    yield maker.make("checked-once-and-read-later", NEWER, bundle_format="plain"), "format"
    yield maker.make("for-another-board", NEWER, board="rpi4"), "it is for another board than virtual-arm64"
    yield maker.make("for-a-board-whose-name-begins-so", NEWER, board="virtual-arm64-2"), "it is for another board than virtual-arm64"
    older = "it is older than what runs"
    yield maker.make("older", "0.0.9"), older
    yield maker.make("an-older-build-of-the-same-release", "0.1.0-20200101000000+fffffff"), older
    yield maker.make("without-a-version", None), "it has no version"
    yield maker.make("a-version-without-an-order", "latest"), "version"
    yield maker.make("without-a-kernel", NEWER, without=["kernel.gz"]), "it has no kernel.gz"
    yield maker.make("without-an-initial-ram-disk", NEWER, without=["initrd"]), "it has no initrd"
    for name, what in UNEXPECTED_FILES.items():
        yield maker.make(f"with-{what}", NEWER, files={name: b"init=/bin/sh\n"}), f"it has an unexpected “{name}”"
    for what, (name, kind) in NO_REGULAR_FILES.items():
        yield maker.make(f"with-{what}", NEWER, pseudo=[f"{name} {kind}"]), f"it has an unexpected “{name}”"
    yield maker.make("a-kernel-for-a-slot", NEWER, image="kernel.gz"), "its image for a slot is not slot.img"
    yield maker.make("an-image-of-another-class", NEWER, image=None, manifest="[image.firmware]\nfilename=slot.img"), "it has no image for a slot"


def archive(maker, data):
    """An update in the former format: a tar archive, which contains each name twice."""
    directory = maker.directory / "archive"
    directory.mkdir()
    (directory / "manifest").write_text("board virtual-arm64\nversion 9.0.0\n")
    (directory / "slot").write_bytes(data)
    path = maker.directory / "an-archive-with-a-name-twice"
    for _ in range(2):
        subprocess.run(["tar", "-rf", path, "-C", directory, "manifest", "slot"], check=True)
    return path


# Names that are not regular files: the command that makes the name on the board, and the name.
NO_FILES = [
    ("mkfifo /run/no/pipe", "/run/no/pipe"),
    ("ln -s pipe /run/no/link-to-a-pipe", "/run/no/link-to-a-pipe"),
    ("ln -s /dev/zero /run/no/link-to-a-device", "/run/no/link-to-a-device"),
    ("ln -s link-to-itself /run/no/link-to-itself", "/run/no/link-to-itself"),
    ("true", "/dev/causeway-slot-a"),
    ("true", "/dev/zero"),
    ("mkdir /run/no/directory", "/run/no/directory"),
    ("true", "/run/no/nothing"),
]
