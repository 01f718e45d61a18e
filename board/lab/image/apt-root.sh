# apt-root.sh: a private apt (own lists, cache, package database and configuration), so that packages of another
# Debian release and architecture can be fetched without touching the host's. Sourced by image.sh.

# debian_mirror: the archive the host's own apt uses, in whatever form it is configured. `update --print-uris`
# understands deb822 and one-line sources alike and needs neither the network nor downloaded lists.
debian_mirror() {
    if [ -n "${CAUSEWAY_DEBIAN_MIRROR:-}" ]; then
        echo "$CAUSEWAY_DEBIAN_MIRROR"
        return
    fi
    APT_CONFIG= apt-get update --print-uris | python3 -c '
import re, sys
suites = {}                                    # archive -> its suites, in order of appearance
for line in sys.stdin:
    if match := re.match(r"\x27(\S+?)/+dists/(\S+)/InRelease\x27", line):
        suites.setdefault(match[1], []).append(match[2])
# The Debian archive is the archive with an -updates suite; third parties have no such suite, and security has only its
# own.
with_updates = [base for base, names in suites.items() if any(name + "-updates" in names for name in names)]
named_debian = [base for base in suites if re.search(r"/debian$", base)]
found = with_updates + named_debian
print(found[0]) if found else sys.exit("lab: no Debian archive in the configuration of apt; set CAUSEWAY_DEBIAN_MIRROR")
'
}

# make_apt_root DIRECTORY ARCHITECTURE SUITE: after this call, APT_CONFIG=DIRECTORY/apt.conf apt-get ... is a private
# apt.
make_apt_root() {
    local root=$1 architecture=$2 suite=$3 mirror
    local keyring=/usr/share/keyrings/debian-archive-keyring.gpg
    mirror=$(debian_mirror)
    mkdir -p "$root"/lists/partial "$root"/archives/partial
    : > "$root/status"
    cat > "$root/sources.list" <<-EOF
	deb [arch=$architecture signed-by=$keyring] $mirror $suite main non-free-firmware
	EOF
    {
        # How to reach the network (proxies, certificates, clock) stays as configured on the host.
        APT_CONFIG= apt-config dump --no-empty --format '%F "%v";%n' Acquire::http Acquire::https Acquire::Check-Valid-Until \
            Acquire::Check-Date Acquire::Retries
        cat <<-EOF
	APT::Architecture "$architecture";
	APT::Architectures { "$architecture"; };
	APT::Install-Recommends "false";
	APT::Sandbox::User "root";
	Acquire::Languages "none";
	Dir::State "$root";
	Dir::State::lists "$root/lists";
	Dir::State::status "$root/status";
	Dir::Cache "$root";
	Dir::Cache::archives "$root/archives";
	Dir::Etc::sourcelist "$root/sources.list";
	Dir::Etc::sourceparts "/dev/null";
	Dir::Etc::preferencesparts "/dev/null";
	Dir::Etc::parts "/dev/null";
	Debug::NoLocking "1";
	EOF
    } > "$root/apt.conf"
    APT_CONFIG=$root/apt.conf apt-get -qq update
}

# package_files APT-ROOT PACKAGE...: download the packages and all their dependencies; print the file names.
package_files() {
    local root=$1
    shift
    APT_CONFIG=$root/apt.conf apt-get -qq -y --download-only install "$@" >&2
    # A simulation names the versions the solver chose; each is a file in the archive directory now.
    APT_CONFIG=$root/apt.conf apt-get -s -qq install "$@" | python3 -c '
import os, re, sys, urllib.parse
root = sys.argv[1]
for line in sys.stdin:
    if match := re.match(r"Inst (\S+) \((\S+) .*\[(\w+)\]\)", line):
        name, version, architecture = match.groups()
        name = name.split(":")[0]
        version = version.replace(":", "%3a")          # as apt writes the colon of an epoch in a file name
        path = f"{root}/archives/{name}_{version}_{architecture}.deb"
        if not os.path.exists(path):
            sys.exit(f"lab: apt did not deliver {path}")
        print(path)
' "$root"
}
