"""Updates of a card, true ones and false ones: what `rauc bundle` makes of a directory, and what somebody makes of that.

A bundle is a squashfs, the hash tree over its blocks, a CMS signature over the manifest with the root hash, and eight bytes with the
signature's length."""
import pathlib
import random
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
    """A key and its certificate, made by board/image/update-key.sh, or by openssl with the extensions given."""

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
    """Makes bundles in a directory of its own. Those for which no `files` are given are small, and start nothing."""

    FILES = {name: random.Random(name).randbytes(20000) for name in ("slot.img", "boot/kernel.gz", "boot/initrd")}

    def __init__(self, directory, signer):
        self.directory, self.signer = directory, signer
        directory.mkdir(parents=True, exist_ok=True)

    def make(self, name, version, board="virtual-arm64", signer=None, files=None, without=(), links=(), image="slot.img", manifest="",
             bundle_format="verity"):
        """The path of a bundle. A value of `files` is bytes, or the path of a file."""
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
        for link, target in links:
            (source / link).unlink(missing_ok=True)
            (source / link).symlink_to(target)
        lines = ["[update]", f"compatible=causeway-{board}", *([f"version={version}"] if version else []), "[bundle]",
                 f"format={bundle_format}", *(["[image.system]", f"filename={image}"] if image else []), manifest]
        (source / "manifest.raucm").write_text("\n".join(lines) + "\n")
        signer = signer or self.signer
        run("rauc", "bundle", f"--cert={signer.certificate}", f"--key={signer.key}", source, path)
        shutil.rmtree(source)
        return path

    def write(self, name, data):
        path = self.directory / name
        path.write_bytes(data)
        return path
