#!/usr/bin/env python3
"""Writes what a bundle or an image is made of as an SPDX 2.3 document in JSON, on standard output. Facts come from dpkg's list of
packages, from the files themselves, and from the list of releases beside NVIDIA's libraries; what is not known is NOASSERTION."""
import argparse
import datetime
import hashlib
import json
import os
import pathlib
import re
import sys
import uuid

UNKNOWN = "NOASSERTION"


def paragraphs(text):
    """dpkg's status: a dictionary for each package."""
    for block in re.split(r"\n\s*\n", text):
        fields = dict(re.findall(r"^([A-Za-z][\w-]*): (.*)$", block, re.M))
        if fields.get("Package"):
            yield fields


def installed(status):
    return sorted(({"name": p["Package"], "version": p["Version"], "arch": p.get("Architecture", "all"), "source": p.get("Source", p["Package"])}
                   for p in paragraphs(status) if p.get("Status", "").endswith(" installed")), key=lambda p: p["name"])


def identifier(*parts):
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", "-".join(parts))


def sha256(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


def package(name, version, kind, **more):
    return {"SPDXID": identifier(kind, name), "name": name, "versionInfo": version, "downloadLocation": UNKNOWN, "filesAnalyzed": False,
            "licenseConcluded": UNKNOWN, "licenseDeclared": UNKNOWN, "copyrightText": UNKNOWN, **more}


def debian(p):
    purl = f"pkg:deb/debian/{p['name'].replace('+', '%2B')}@{p['version'].replace('+', '%2B').replace(':', '%3A')}?arch={p['arch']}"
    return package(p["name"], p["version"], "deb", supplier="Organization: Debian", sourceInfo=f"source package {p['source']}",
                   externalRefs=[{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": purl}])


def linked(p):
    """A package whose static libraries are part of a program; it is installed where that was built only."""
    return {**debian(p), "SPDXID": identifier("static", p["name"]), "comment": "static libraries of it are part of a program"}


def program(path, version):
    return package(pathlib.Path(path).name, version, "program", licenseConcluded="Apache-2.0", licenseDeclared="Apache-2.0",
                   primaryPackagePurpose="APPLICATION", checksums=[{"algorithm": "SHA256", "checksumValue": sha256(path)}])


def nvidia(folder):
    """Packages named in RELEASES, and the libraries themselves with their digests."""
    licence = "LicenseRef-NVIDIA-EULA"
    for line in (folder / "RELEASES").read_text().splitlines():
        name, version = line.split()
        yield package(name, version, "pypi", supplier="Organization: NVIDIA Corporation", licenseDeclared=licence,
                      externalRefs=[{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": f"pkg:pypi/{name}@{version}"}])
    for library in sorted((folder / "lib").iterdir()):
        yield package(library.name, UNKNOWN, "file", supplier="Organization: NVIDIA Corporation", licenseDeclared=licence,
                      checksums=[{"algorithm": "SHA256", "checksumValue": sha256(library)}])


def created():
    """SOURCE_DATE_EPOCH makes two runs the same."""
    at = os.environ.get("SOURCE_DATE_EPOCH")
    when = datetime.datetime.fromtimestamp(int(at), datetime.timezone.utc) if at else datetime.datetime.now(datetime.timezone.utc)
    return when.strftime("%Y-%m-%dT%H:%M:%SZ")


def document(name, version, parts, with_nvidia):
    top = package(name, version, "top", licenseConcluded=UNKNOWN, licenseDeclared="Apache-2.0", primaryPackagePurpose="CONTAINER" if "image" in name else "ARCHIVE")
    content = json.dumps(parts, sort_keys=True)
    made = {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"{name}-{version}",
            "documentNamespace": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, name + version + content)}",
            "creationInfo": {"created": created(), "creators": ["Tool: gpurest-sbom"]},
            "packages": [top, *parts],
            "relationships": [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": top["SPDXID"]},
                              *({"spdxElementId": top["SPDXID"], "relationshipType": "CONTAINS", "relatedSpdxElement": p["SPDXID"]} for p in parts)]}
    if with_nvidia:
        made["hasExtractedLicensingInfos"] = [{"licenseId": "LicenseRef-NVIDIA-EULA", "name": "NVIDIA Software License Agreement",
                                               "extractedText": "The text is in the file NVIDIA-EULA.txt beside the libraries."}]
    return made


def chosen(packages, names):
    wanted = set(pathlib.Path(names).read_text().split())
    found = [p for p in packages if p["name"] in wanted]
    missing = wanted - {p["name"] for p in found}
    if missing:
        sys.exit(f"sbom: not installed: {', '.join(sorted(missing))}")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--name", required=True)
    parser.add_argument("--version", required=True)
    parser.add_argument("--program", action="append", default=[], metavar="FILE", help="an executable of ours")
    parser.add_argument("--dpkg-status", default="/var/lib/dpkg/status", metavar="FILE", help="dpkg's list of packages")
    parser.add_argument("--only", metavar="FILE", help="names of packages, one a line: of the list only these are in it")
    parser.add_argument("--linked", metavar="FILE", help="names of packages, one a line, whose static libraries are in the programs")
    parser.add_argument("--linked-status", default="/var/lib/dpkg/status", metavar="FILE", help="dpkg's list of packages where the programs were linked")
    parser.add_argument("--nvrtc", type=pathlib.Path, metavar="FOLDER", help="NVIDIA's libraries as take-nvrtc.sh leaves them")
    args = parser.parse_args()

    packages = installed(pathlib.Path(args.dpkg_status).read_text())
    if args.only:
        packages = chosen(packages, args.only)
    parts = [program(path, args.version) for path in args.program] + [debian(p) for p in packages]
    if args.linked:
        parts += [linked(p) for p in chosen(installed(pathlib.Path(args.linked_status).read_text()), args.linked)]
    if args.nvrtc:
        parts += nvidia(args.nvrtc)
    json.dump(document(args.name, args.version, parts, bool(args.nvrtc)), sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
