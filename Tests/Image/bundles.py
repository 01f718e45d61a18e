"""Valid and false updates of a card: bundles that `rauc bundle` makes from a directory, and manipulated ones.

A bundle is a squashfs, the hash tree over its blocks, a CMS signature over the manifest with the root hash, and eight
bytes with the signature's length."""
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
    """A key and its certificate, made by board/image/update-key.sh, or by openssl with the given extensions."""

    def __init__(self, key, certificate=None):
        self.key, self.certificate = key, certificate or key.with_suffix(".crt")

    @classmethod
    def new(cls, directory, name, *extensions):
        key = directory / f"{name}.key"
        if not extensions:
            run(PROJECT / "board/image/update-key.sh", key)
        else:
            run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc", "-days", "10950", "-subj",
                "/CN=Causeway updates", *(word for extension in extensions for word in ("-addext", extension)), "-keyout", key,
                "-out", key.with_suffix(".crt"))
        return cls(key)


class Bundle:
    """The bytes of a bundle in their parts."""

    def __init__(self, data):
        length = LENGTH.unpack(data[-LENGTH.size:])[0]
        end = len(data) - LENGTH.size
        self.payload, self.signature = data[:end - length], data[end - length:end]

    def data(self, payload=None, signature=None, length=None):
        payload = self.payload if payload is None else payload
        signature = self.signature if signature is None else signature
        return payload + signature + LENGTH.pack(len(signature) if length is None else length)


class Maker:
    """Makes bundles in its own directory. Bundles without `files` are small, and cannot start."""

    FILES = {name: random.Random(name).randbytes(20000) for name in ("slot.img", "kernel.gz", "initrd")}

    def __init__(self, directory, signer, root=None):
        """`root` is another system's root, whose RAUC makes the bundles. The directory and the keys are in it."""
        self.directory, self.signer, self.root = directory, signer, root
        directory.mkdir(parents=True, exist_ok=True)

    def make(self, name, version, board="virtual-arm64", signer=None, files=None, without=(), pseudo=(), image="slot.img", manifest="",
             bundle_format="verity"):
        """Make a bundle and return its path. A value of `files` is bytes, or the path of a file. `pseudo` has
        pseudo-file definitions of mksquashfs, which replace files of the same name. RAUC itself rejects links and
        directories, but the holder of the key need not use RAUC."""
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
        # RAUC 1.8 opens its own descriptors through /proc.
        return ["unshare", "--mount", "sh", "-c", 'mount -t proc proc "$0/proc" && exec chroot "$0" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"',
                self.root, name]

    def place(self, path):
        """A path, as RAUC sees it."""
        return pathlib.Path("/", path.relative_to(self.root)) if self.root else path

    def content(self, path):
        """The lines of unsquashfs for a bundle: type and permissions first, the path from `squashfs-root/` on last."""
        done = subprocess.run([*self.program("unsquashfs"), "-ll", self.place(path)], check=True, capture_output=True, text=True)
        return [line for line in done.stdout.splitlines() if "squashfs-root/" in line]

    def write(self, name, data):
        path = self.directory / name
        path.write_bytes(data)
        return path
