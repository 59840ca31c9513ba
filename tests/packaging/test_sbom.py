"""The bill of materials of a bundle, and packaging/sbom.py on lists made for the test. test_image.py checks those of the images."""
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SBOM = ROOT / "packaging" / "sbom.py"
STATUS = """Package: liba1
Status: install ok installed
Architecture: amd64
Source: a (1.0)
Version: 1:1.0+b2~deb12
Description: a
 more of it
  Package: not-one

Package: gone
Status: deinstall ok config-files
Architecture: amd64
Version: 3

Package: libz1
Status: install ok installed
Architecture: all
Version: 2-1
"""


def make(*arguments, **environment):
    return subprocess.run([sys.executable, SBOM, "--name", "thing", "--version", "1.2", *arguments], capture_output=True, text=True, timeout=60,
                          env={**os.environ, **environment})


@pytest.fixture
def status(tmp_path):
    path = tmp_path / "status"
    path.write_text(STATUS)
    return path


def checked(text):
    """The parsed document, after the checks that SPDX 2.3 requires of every document."""
    bill = json.loads(text)
    assert (bill["spdxVersion"], bill["dataLicense"], bill["SPDXID"]) == ("SPDX-2.3", "CC0-1.0", "SPDXRef-DOCUMENT")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", bill["creationInfo"]["created"]) and bill["creationInfo"]["creators"]
    assert re.match(r"urn:uuid:[0-9a-f-]{36}$", bill["documentNamespace"])
    ids = [p["SPDXID"] for p in bill["packages"]]
    assert len(set(ids)) == len(ids) and all(re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", i) for i in ids)
    for p in bill["packages"]:
        assert p["name"] and p["downloadLocation"] and p["filesAnalyzed"] is False
        assert {"licenseConcluded", "licenseDeclared", "copyrightText", "versionInfo"} <= p.keys()
    named = {"SPDXRef-DOCUMENT", *ids}
    assert all({r["spdxElementId"], r["relatedSpdxElement"]} <= named for r in bill["relationships"])
    told = {info["licenseId"] for info in bill.get("hasExtractedLicensingInfos", [])}
    assert {p["licenseDeclared"] for p in bill["packages"] if p["licenseDeclared"].startswith("LicenseRef-")} == told
    return bill


def test_it_lists_what_is_installed_and_nothing_else(status):
    got = make("--dpkg-status", str(status))
    assert got.returncode == 0, got.stderr
    bill = checked(got.stdout)
    assert [(p["name"], p["versionInfo"]) for p in bill["packages"][1:]] == [("liba1", "1:1.0+b2~deb12"), ("libz1", "2-1")]
    assert bill["packages"][1]["externalRefs"][0]["referenceLocator"] == "pkg:deb/debian/liba1@1%3A1.0%2Bb2~deb12?arch=amd64"
    assert [r["relationshipType"] for r in bill["relationships"]] == ["DESCRIBES", "CONTAINS", "CONTAINS"]


def test_programs_are_told_apart_by_their_digest(status, tmp_path):
    program = tmp_path / "tool"
    program.write_bytes(b"\x7fELF")
    bill = checked(make("--dpkg-status", str(status), "--program", str(program)).stdout)
    (mine,) = [p for p in bill["packages"] if p["name"] == "tool"]
    assert mine["checksums"] == [{"algorithm": "SHA256", "checksumValue": hashlib.sha256(b"\x7fELF").hexdigest()}]
    assert mine["licenseDeclared"] == "Apache-2.0" and mine["versionInfo"] == "1.2"


def test_nvidias_parts_are_under_nvidias_licence(status, tmp_path):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/libnvrtc.so.13").write_bytes(b"x")
    (tmp_path / "RELEASES").write_text("nvidia-cuda-nvrtc 13.0.88\n")
    bill = checked(make("--dpkg-status", str(status), "--nvrtc", str(tmp_path)).stdout)
    theirs = {p["name"]: p["versionInfo"] for p in bill["packages"] if p["licenseDeclared"] == "LicenseRef-NVIDIA-EULA"}
    assert theirs == {"nvidia-cuda-nvrtc": "13.0.88", "libnvrtc.so.13": "NOASSERTION"}


def test_what_is_linked_into_a_program_is_told_beside_what_is_installed(status, tmp_path):
    (tmp_path / "linked").write_text("libz1\n")
    (tmp_path / "image").write_text("")
    got = make("--dpkg-status", str(tmp_path / "image"), "--linked-status", str(status), "--linked", str(tmp_path / "linked"))
    assert got.returncode == 0, got.stderr
    assert [(p["SPDXID"], p["versionInfo"]) for p in checked(got.stdout)["packages"][1:]] == [("SPDXRef-static-libz1", "2-1")]


def test_the_same_facts_at_the_same_time_make_the_same_document(status):
    one, two = (make("--dpkg-status", str(status), SOURCE_DATE_EPOCH="1700000000").stdout for _ in range(2))
    assert one == two and json.loads(one)["creationInfo"]["created"] == "2023-11-14T22:13:20Z"


def test_a_package_that_is_asked_for_and_not_installed_is_a_mistake(status, tmp_path):
    only = tmp_path / "only"
    only.write_text("liba1\ngone\n")
    got = make("--dpkg-status", str(status), "--only", str(only))
    assert got.returncode != 0 and got.stdout == "" and "not installed: gone" in got.stderr


def test_the_bundles_is_of_its_programs_and_libraries():
    archive = os.environ.get("GPUREST_BUNDLE")
    if not archive:
        pytest.skip("GPUREST_BUNDLE does not name a bundle: cmake --build BUILD --target bundle makes one")
    with tarfile.open(archive) as tar:
        names = tar.getnames()
        bill = checked(tar.extractfile(next(n for n in names if n.endswith("/share/sbom.spdx.json"))).read())
        digests = {pathlib.PurePath(n).name: hashlib.sha256(tar.extractfile(n).read()).hexdigest() for n in names
                   if "/libexec/" in n or re.search(r"/lib/(libgpurest_\w+\.so$|gpurest/.)", n)}
    programs = {p["name"]: p["checksums"][0]["checksumValue"] for p in bill["packages"] if p["SPDXID"].startswith("SPDXRef-program-")}
    assert programs == digests
    packages = {p["name"] for p in bill["packages"] if p["SPDXID"].startswith("SPDXRef-deb-")}
    linked = {p["name"] for p in bill["packages"] if p["SPDXID"].startswith("SPDXRef-static-")}
    assert bool(linked) == any(name.startswith("libgpurest_") for name in programs)
    licences = {pathlib.PurePath(n).name for n in names if "/share/licences/" in n}
    assert packages and licences <= packages | linked and "libmicrohttpd12" in packages and "libc6" not in packages
