#!/usr/bin/env bash
# Install the Debian packages named on the command line that are missing here.
#
# It never fails a build: where packages cannot be installed it prints the line to run and goes on, and the program that
# needs one of them says so itself in three lines.
set -u

missing=()
for package in "$@"; do
  if command -v dpkg-query >/dev/null && dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed'; then
    continue
  fi
  missing+=("$package")
done
[ "${#missing[@]}" -eq 0 ] && exit 0

prefix=()
line="apt-get install --yes --no-install-recommends ${missing[*]}"
if ! command -v apt-get >/dev/null; then
  echo "system packages missing here (Debian names): ${missing[*]}" >&2
  exit 0
fi
if [ "$(id -u)" -ne 0 ]; then
  if ! sudo -n true 2>/dev/null; then
    printf 'system packages are missing\n  where: %s\n  mend:  sudo %s\n' "${missing[*]}" "$line" >&2
    exit 0
  fi
  prefix=(sudo -n)
fi

export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
echo "installing system packages: ${missing[*]}"
# One wait for a lock that another installation holds; package lists are fetched only when the first try fails.
install() {
  "${prefix[@]}" apt-get -o DPkg::Lock::Timeout=300 install --yes --no-install-recommends -qq "${missing[@]}" </dev/null >"$log" 2>&1
}
if ! install; then
  "${prefix[@]}" apt-get -o DPkg::Lock::Timeout=300 update -qq </dev/null >"$log" 2>&1
  if ! install; then
    tail -3 "$log" >&2
    printf 'system packages could not be installed\n  where: %s\n  mend:  %s\n' "${missing[*]}" "$line" >&2
  fi
fi
exit 0
