#!/usr/bin/env python3
"""screenshots.py GPURESTD: remakes the pictures of the dashboard and the API page in docs/img/, from a service that has just done some
work. Needs Chromium."""
import base64
import pathlib
import shutil
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "service"))
from browser import page  # noqa: E402
from service_under_test import Service  # noqa: E402

WIDTH, HEIGHT = 1200, 1560
SOFTMAX = {"builtin": "softmax", "dtype": "f32", "args": [{"buf": "x"}, {"buf": "x"}, {"u64": 1024}, {"u64": 1024}]}
OPEN = """const one = [...document.querySelectorAll('details')].find((d) => /^\\s*POST\\s*\\/v1\\/sessions\\/\\{sid\\}\\/launches/.test(d.textContent));
one.open = true; one.scrollIntoView()"""


def work(client):
    for name in ("demo", "vision"):
        client.put("/v1/sessions/" + name)
    client.put("/v1/sessions/demo/buffers/x", {"size": 4 << 20})
    client.get("/v1/sessions/nobody")
    for _ in range(200):
        client.post("/v1/sessions/demo/launches", SOFTMAX)


def shoot(opened, name, height):
    opened.browser.command("Emulation.setDeviceMetricsOverride", opened.session, width=WIDTH, height=height, deviceScaleFactor=1, mobile=False)
    data = opened.browser.command("Page.captureScreenshot", opened.session, format="png")["data"]
    (ROOT / "docs" / "img" / name).write_bytes(base64.b64decode(data))


def main():
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome") or sys.exit("no Chromium is installed")
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        service = Service(str(pathlib.Path(sys.argv[1]).resolve()), place)
        try:
            with page(browser, place / "dashboard", f"http://127.0.0.1:{service.port}/") as opened:
                opened.wait_for("document.querySelectorAll('#latencies tr').length === 5")
                work(service.client())
                opened.wait_for("document.body.innerText.includes('200 succeeded')")
                shoot(opened, "dashboard.png", HEIGHT)
            with page(browser, place / "docs", f"http://127.0.0.1:{service.port}/docs") as opened:
                opened.wait_for("document.querySelectorAll('details').length > 50")
                opened.value(OPEN)
                shoot(opened, "docs.png", 900)
        finally:
            service.stop()


if __name__ == "__main__":
    main()
