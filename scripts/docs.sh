#!/usr/bin/env bash
# `make docs`: builds the documentation as a site in build/docs/site. A broken link, a page that is in no menu, and every other warning are
# errors.
. "$(dirname "$0")/lib.sh"

BUILD=$ROOT/build/docs
VENV=$BUILD/venv

# A complete venv contains a copy of the requirements it was made from.
install_generator() {
    if cmp -s docs/requirements.txt "$VENV/requirements.txt"; then return; fi
    python3 -m venv "$VENV" || die "python3 -m venv does not work: install python3-venv"
    "$VENV/bin/python3" -m pip install -q -r docs/requirements.txt || die "the packages of docs/requirements.txt could not be installed with pip"
    cp docs/requirements.txt "$VENV/requirements.txt"
}

mkdir -p "$BUILD"
install_generator
"$VENV/bin/python3" scripts/docs_pages.py "$BUILD/src"
# The theme announces a later generator at every build; this is no warning about our pages.
NO_MKDOCS_2_WARNING=1 "$VENV/bin/python3" -m mkdocs build --strict --config-file mkdocs.yml
say "the site is build/docs/site/index.html"
