"""A Debian release in a directory, for the tests beside this file. mmdebstrap fetches it from the archive that apt uses."""
import pathlib
import re
import subprocess
import tempfile

PROJECT = pathlib.Path(__file__).resolve().parents[2]
KEY = "/usr/share/keyrings/debian-archive-keyring.gpg"
ENVIRONMENT = ("/usr/bin/env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive")


def run(*words, **options):
    done = subprocess.run([str(word) for word in words], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    if done.returncode:
        raise AssertionError(f"{' '.join(map(str, words))} ended with {done.returncode}: {done.stdout}")
    return done.stdout


def mirror():
    """The archive from which the host's own apt fetches packages."""
    uris = re.findall(r"'(\S+?)/+dists/\S+?/InRelease'", run("apt-get", "update", "--print-uris"))
    return next(uri for uri in uris if re.search(r"/debian$", uri))


class Root:
    """A temporary directory with the smallest installation of a Debian release, and some packages."""

    def __init__(self, suite, *packages):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix=f"causeway-{suite}-"))
        run("mmdebstrap", "--quiet", "--variant=minbase", f"--include={','.join(packages)}", f"--keyring={KEY}", suite, self.path, mirror())

    def run(self, *words):
        return run("chroot", self.path, *ENVIRONMENT, *words)
