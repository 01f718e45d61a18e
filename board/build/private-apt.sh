#!/usr/bin/env bash
# A private apt: package lists, cache and status of its own, so that packages of another Debian
# release and architecture can be fetched without touching the host. Sourced by sysroot.sh.
#
#   private_apt DIR DEB_ARCH SUITE    prepare DIR and set APT_CONFIG for the commands that follow

# The mirror the host itself uses for Debian's main archive, whichever of apt's two formats names it.
debian_mirror() {
  local uri
  uri=$(sed -n 's/^URIs:[[:space:]]*\([^[:space:]]*\).*/\1/p' /etc/apt/sources.list.d/debian.sources 2>/dev/null | head -n 1)
  [ -n "$uri" ] || uri=$(sed -n 's/^deb[[:space:]]\(\[[^]]*\][[:space:]]*\)\{0,1\}\([^[:space:]]*\)[[:space:]].*[[:space:]]main.*/\2/p' \
    /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null | head -n 1)
  if [ -z "$uri" ]; then
    echo "no Debian mirror found in /etc/apt: this needs a Debian 12 or 13 host" >&2
    return 1
  fi
  printf '%s\n' "$uri"
}

private_apt() {
  local dir=$1 arch=$2 suite=$3 mirror key=/usr/share/keyrings/debian-archive-keyring.gpg
  mirror=$(debian_mirror)
  mkdir -p "$dir/lists/partial" "$dir/cache/archives/partial"
  : > "$dir/status"
  echo "deb [arch=$arch signed-by=$key] $mirror $suite main" > "$dir/sources.list"
  cat > "$dir/apt.conf" <<CONF
APT::Architecture "$arch"; APT::Architectures { "$arch"; };
APT::Install-Recommends "false"; APT::Sandbox::User "root";
Dir::State "$dir/"; Dir::State::lists "$dir/lists"; Dir::State::status "$dir/status"; Dir::Cache "$dir/cache";
Dir::Etc::sourcelist "$dir/sources.list"; Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferencesparts "/dev/null"; Dir::Etc::parts "/dev/null";
Acquire::Languages "none"; Acquire::Retries "3"; Debug::NoLocking "1";
CONF
  export APT_CONFIG=$dir/apt.conf
  apt-get -qq update
}
