"""tls.py GPURESTD FOLDER: the examples over https, with a certificate made for this run. Exit code 77 (skipped) without openssl."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import service

SKIPPED = 77


def make_certificate(folder):
    """cert.pem is self-signed; key.pem is its key."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-keyout",
                    "key.pem", "-out", "cert.pem", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"],
                   cwd=folder, check=True, capture_output=True)
    return folder / "cert.pem", folder / "key.pem"


def run(program, url, **environment):
    return subprocess.run([str(program)], env={**os.environ, "GPUREST_URL": url, **environment}, capture_output=True, text=True, timeout=120)


def check(examples, address, certificate):
    for name in ("vector_add", "matmul", "pipeline"):
        done = run(examples / name, f"https://{address}", GPUREST_CA_FILE=str(certificate))
        assert done.returncode == 0 and ("0 wrong" in done.stdout or "right" in done.stdout), (name, done)
    stranger = run(examples / "vector_add", f"https://{address}")
    assert stranger.returncode != 0 and "TLS" in stranger.stderr and "ca_file" in stranger.stderr, stranger
    plain = run(examples / "vector_add", f"http://{address}")
    assert plain.returncode != 0, plain


def main():
    if not shutil.which("openssl"):
        print("skipped: openssl, which makes the certificate, is not installed")
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="gpurest_tls_") as folder:
        certificate, key = make_certificate(pathlib.Path(folder))
        with service.running(sys.argv[1], "--tls-cert", str(certificate), "--tls-key", str(key)) as url:
            check(pathlib.Path(sys.argv[2]), url.split("//")[1], certificate)
    print("TLS works, and a certificate that nobody vouches for does not")
    return 0


if __name__ == "__main__":
    sys.exit(main())
