"""The compiled programs of the benchmarks, and the directory for files that these programs and the relays read."""
import pathlib
import subprocess

SOURCES = {"generator": ("generator endpoint link protocols connection", "ssl crypto sodium"), "hub": ("hub connection", "ssl crypto")}


def compile_programs(directory):
    """Compile the generator and the hub with the C compiler and libraries of this machine."""
    here = pathlib.Path(__file__).parent
    for name, (sources, libraries) in SOURCES.items():
        subprocess.run(["cc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-o", directory / name,
                        *(here / f"{source}.c" for source in sources.split()), *(f"-l{library}" for library in libraries.split())], check=True)


class Workshop:
    def __init__(self, directory, programs, binary):
        self.directory, self.binary = str(directory), str(binary)
        compile_programs(programs)
        self.generator, self.hub = programs / "generator", programs / "hub"
        # All ends share one certificate, which is also the authority that the ends accept.
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                        "-subj", "/CN=bench", "-keyout", f"{directory}/key", "-out", f"{directory}/certificate"], check=True, capture_output=True)
        self.pem = self.write("pem", "".join(pathlib.Path(directory, name).read_text() for name in ("certificate", "key")))

    def write(self, name, text):
        path = pathlib.Path(self.directory) / name
        path.write_text(text)
        return str(path)
