"""Valid and false updates of a card. An update is a bundle that `rauc bundle` makes from a directory. Some are altered here.

A bundle has four parts: a squashfs, the hash tree over its blocks, a CMS signature, and eight bytes with the signature's length.
The signature is over the manifest, which contains the root hash of the tree."""
import pathlib
import random
import shlex
import shutil
import struct
import subprocess

from board import PROJECT

LENGTH = struct.Struct(">Q")
BLOCK = 4096


def run(*words):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, words))} ended with {done.returncode}: {done.stdout}")


class Signer:
    """A key that signs updates, and its certificate. board/build/image/update-key.sh makes them, or openssl if extensions are given."""

    def __init__(self, key, certificate=None):
        self.key, self.certificate = key, certificate or key.with_suffix(".crt")

    @classmethod
    def new(cls, directory, name, *extensions):
        key = directory / f"{name}.key"
        if not extensions:
            run(PROJECT / "board/build/image/update-key.sh", key)
        else:
            run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc", "-days", "10950", "-subj",
                "/CN=Causeway updates", *(word for extension in extensions for word in ("-addext", extension)), "-keyout", key,
                "-out", key.with_suffix(".crt"))
        return cls(key)


class Bundle:
    """A bundle that is split into payload and signature."""

    def __init__(self, data):
        length = LENGTH.unpack(data[-LENGTH.size:])[0]
        end = len(data) - LENGTH.size
        self.payload, self.signature = data[:end - length], data[end - length:end]

    def data(self, payload=None, signature=None, length=None):
        payload = self.payload if payload is None else payload
        signature = self.signature if signature is None else signature
        return payload + signature + LENGTH.pack(len(signature) if length is None else length)


class Maker:
    """Makes bundles in a directory. Without `files`, a bundle contains random bytes: it is small, and no slot can start from it."""

    FILES = {name: random.Random(name).randbytes(20000) for name in ("slot.img", "kernel.gz", "initrd")}

    def __init__(self, directory, signer, root=None):
        """`root`: the root directory of another system, whose RAUC makes the bundles. It must contain `directory` and the keys."""
        self.directory, self.signer, self.root = directory, signer, root
        directory.mkdir(parents=True, exist_ok=True)

    def make(self, name, version, board="virtual-arm64", signer=None, files=None, without=(), pseudo=(), image="slot.img", manifest="",
             bundle_format="verity"):
        """Make a bundle and return its path. `files` maps a name to bytes or to the path of a file. `pseudo` contains
        pseudo-file definitions of mksquashfs, which replace files of the same name. They are needed because `rauc bundle`
        rejects links and directories. The holder of the key could sign a bundle of another program."""
        source, path = self.directory / f"{name}.d", self.directory / name
        shutil.rmtree(source, ignore_errors=True)
        path.unlink(missing_ok=True)
        for file, content in {**self.FILES, **(files or {})}.items():
            if file in without:
                continue
            target = source / file
            target.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, pathlib.Path):
                shutil.copy(content, target)
            else:
                target.write_bytes(content)
        lines = ["[update]", f"compatible=causeway-{board}", *([f"version={version}"] if version else []), "[bundle]",
                 f"format={bundle_format}", *(["[image.system]", f"filename={image}"] if image else []), manifest]
        (source / "manifest.raucm").write_text("\n".join(lines) + "\n")
        signer = signer or self.signer
        arguments = [word for definition in pseudo for word in ("-p", definition)]
        if pseudo:
            arguments += ["-e", *(definition.split()[0] for definition in pseudo)]
        run(*self.program("rauc"), "bundle", f"--cert={self.place(signer.certificate)}", f"--key={self.place(signer.key)}",
            *([f"--mksquashfs-args={shlex.join(arguments)}"] if arguments else []), self.place(source), self.place(path))
        shutil.rmtree(source)
        return path

    def program(self, name):
        if not self.root:
            return [name]
        # RAUC 1.8 opens its own descriptors through /proc, so the other root needs /proc.
        return ["unshare", "--mount", "sh", "-c", 'mount -t proc proc "$0/proc" && exec chroot "$0" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"',
                self.root, name]

    def place(self, path):
        """The path by which RAUC names a file: relative to the other system's root, if there is one."""
        return pathlib.Path("/", path.relative_to(self.root)) if self.root else path

    def content(self, path):
        """The lines that unsquashfs lists for a bundle. A line begins with type and permissions and ends with `squashfs-root/PATH`."""
        done = subprocess.run([*self.program("unsquashfs"), "-ll", self.place(path)], check=True, capture_output=True, text=True)
        return [line for line in done.stdout.splitlines() if "squashfs-root/" in line]

    def write(self, name, data):
        path = self.directory / name
        path.write_bytes(data)
        return path
