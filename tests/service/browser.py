"""Headless Chromium over its debugging pipe (descriptors 3 and 4, JSON ended by NUL), with a page that stays open during the test."""
import contextlib
import json
import os
import select
import subprocess
import time

DEADLINE_S = 90


class Navigated(Exception):
    """The page went away while it was asked."""


class Browser:
    def __init__(self, executable, folder):
        ours_in, its_out = os.pipe()
        its_in, ours_out = os.pipe()

        def place():
            # Moved above 4 first, so that neither overwrites the other.
            high_in, high_out = os.dup(its_in), os.dup(its_out)
            while min(high_in, high_out) <= 4:
                high_in, high_out = os.dup(high_in), os.dup(high_out)
            os.dup2(high_in, 3)
            os.dup2(high_out, 4)

        self.process = subprocess.Popen([executable, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe",
                                         f"--user-data-dir={folder}"], preexec_fn=place, close_fds=False, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(its_in)
        os.close(its_out)
        self.incoming, self.outgoing, self.rest, self.number = ours_in, ours_out, b"", 0

    def command(self, method, session=None, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters, **({"sessionId": session} if session else {})}
        os.write(self.outgoing, json.dumps(message).encode() + b"\0")
        while (answer := self.message()).get("id") != self.number:
            continue
        if "navigated" in answer.get("error", {}).get("message", ""):
            raise Navigated(answer)
        assert "error" not in answer, answer
        return answer["result"]

    def message(self):
        give_up = time.monotonic() + DEADLINE_S
        while b"\0" not in self.rest:
            ready, _, _ = select.select([self.incoming], [], [], max(0, give_up - time.monotonic()))
            piece = os.read(self.incoming, 65536) if ready else b""
            assert piece, "the browser says nothing"
            self.rest += piece
        first, self.rest = self.rest.split(b"\0", 1)
        return json.loads(first)

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.incoming)
        os.close(self.outgoing)


class Page:
    def __init__(self, browser, url):
        self.browser = browser
        target = browser.command("Target.createTarget", url=url)["targetId"]
        self.session = browser.command("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def value(self, expression):
        """None too while the page is being replaced by another."""
        try:
            return self.browser.command("Runtime.evaluate", self.session, expression=expression, returnByValue=True)["result"].get("value")
        except Navigated:
            return None

    def wait_for(self, expression):
        """Waits until the expression is true in the page."""
        give_up = time.monotonic() + DEADLINE_S
        while not self.value(f"Boolean(document.body) && Boolean({expression})"):
            assert time.monotonic() < give_up, (expression, self.value("document.body.innerText"))
            time.sleep(0.05)


@contextlib.contextmanager
def page(executable, folder, url):
    browser = Browser(executable, folder)
    try:
        yield Page(browser, url)
    finally:
        browser.close()
