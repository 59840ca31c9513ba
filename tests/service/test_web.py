"""The web pages: their contents, who may get them, and that a browser shows the service's data on them."""
import re
import shutil
import subprocess

import pytest

from browser import page
from test_changes import Follower
from test_start_and_auth import token_file

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
needs_browser = pytest.mark.skipif(not BROWSER, reason="no Chromium is installed")


def test_a_browser_gets_the_dashboard_and_everybody_else_the_document(client):
    for accept, html in ((None, False), ("*/*", False), ("application/json", False), ("application/json, text/html", False),
                         ("text/html,application/xhtml+xml,*/*;q=0.8", True)):
        answer = client.request("GET", "/", headers={"Accept": accept} if accept else {})
        assert answer.status == 200 and answer.headers["Vary"] == "Accept"
        assert answer.headers["Content-Type"].startswith("text/html" if html else "application/json"), accept


@pytest.mark.parametrize("path", ["/docs", "/web/dashboard.html", "/web/docs.js", "/web/dashboard.js", "/web/activity.js", "/web/timelines.js", "/web/common.js", "/web/style.css"])
def test_pages_load_nothing_from_elsewhere_and_run_nothing_inline(client, path):
    answer = client.get(path)
    policy = answer.headers["Content-Security-Policy"]
    text = answer.body.decode()
    assert answer.status == 200 and answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy and "unsafe" not in policy
    assert not re.search(r"(?:src|href)=\"(?!/|data:,)", text) and not re.search(r"https?://", text)
    assert not re.search(r"<script>|<style>|\son\w+=\"|\bstyle=\"", text)


def test_every_file_that_a_page_names_is_there(client):
    for page in ("/docs", "/web/dashboard.html", "/web/docs.js", "/web/dashboard.js", "/web/activity.js", "/web/timelines.js"):
        for name in re.findall(r"[\"'](/web/[^\"']+)", client.get(page).body.decode()):
            assert client.get(name).status == 200, name


@pytest.mark.parametrize("name", ["nothing.js", "..%2fapi", "embed.py", "%00"])
def test_other_names_are_nothing(client, name):
    assert client.get("/web/" + name).status in (400, 404)


def test_pages_are_open_and_what_they_ask_for_is_not(start, tmp_path):
    tokens = token_file(tmp_path / "tokens.json", ada=["read"])
    client = start("--tokens", tokens).client()
    assert client.get("/docs").status == client.get("/web/docs.js").status == 200
    assert client.request("GET", "/", headers={"Accept": "text/html"}).status == 200
    assert client.get("/").code == client.get("/openapi.json").code == client.get("/v1/devices").code == "unauthenticated"
    assert client.get("/", Authorization="Bearer ada-secret").status == 200
    client.close()


def test_a_page_of_this_service_may_send_requests_and_others_may_not(client, service):
    own = f"http://127.0.0.1:{service.port}"
    assert client.post("/v1/sessions", {"idle_timeout_s": 1}, Origin=own, Sec_Fetch_Site="same-origin").status == 201
    assert client.post("/v1/sessions", {}, Origin=own.replace("http:", "https:")).code == "origin_not_allowed"


def shown(folder, url):
    """The page's text after its scripts have run."""
    run = subprocess.run([BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--user-data-dir={folder}",
                          "--virtual-time-budget=5000", "--dump-dom", url], capture_output=True, text=True, timeout=180)
    return re.sub(r"<[^>]+>", " ", run.stdout)


@needs_browser
def test_the_dashboard_shows_devices_and_sessions(client, service, session, tmp_path):
    assert client.put(session + "/buffers/x", {"size": 3 * 1024 * 1024}).status == 201
    text = shown(tmp_path, f"http://127.0.0.1:{service.port}/")
    device = client.get("/v1/devices").json()["items"][0]
    assert device["id"] in text and device["name"] in text and "healthy" in text
    assert session.rsplit("/", 1)[1] in text and "3.0 MiB" in text
    assert "requests_in_flight" in text


@needs_browser
def test_the_docs_show_every_operation(client, service, tmp_path):
    text = shown(tmp_path, f"http://127.0.0.1:{service.port}/docs")
    document = client.get("/openapi.json").json()
    for path, item in document["paths"].items():
        assert path in text
        for operation in item.values():
            assert operation["summary"].replace("&", "&amp;") in text
    for name in document["components"]["schemas"]:
        assert name in text


FOLLOWS = "document.body.dataset.updates === 'stream'"
POLLS = "document.body.dataset.updates === 'poll'"


def on_page(text):
    return f"document.body.innerText.includes({text!r})"


def in_table(text):
    """Among the sessions that there are; the lines of the last minutes also have those that there were."""
    return f"document.getElementById('sessions').innerText.includes({text!r})"


@needs_browser
def test_the_dashboard_follows_what_happens(start, tmp_path):
    service = start("--access-log")
    client = service.client()
    with page(BROWSER, tmp_path / "profile", f"http://127.0.0.1:{service.port}/") as dashboard:
        dashboard.wait_for(FOLLOWS)
        dashboard.wait_for(on_page("healthy"))
        assert client.put("/v1/sessions/made-later").status == 201
        dashboard.wait_for(on_page("made-later"))
        assert client.put("/v1/sessions/made-later/buffers/x", {"size": 3 * 1024 * 1024}).status == 201
        dashboard.wait_for(on_page("3.0 MiB"))
        assert client.delete("/v1/sessions/made-later").status == 204
        dashboard.wait_for("!" + in_table("made-later"))
        assert dashboard.value(FOLLOWS), "all that by one stream"
    assert service.stderr().count("path=/v1/changes ") <= 1, "a line when it ends"


@needs_browser
def test_without_a_stream_the_dashboard_asks(start, tmp_path):
    service = start()
    client = service.client()
    limit = client.get("/v1/limits").json()["limits"]["event_streams"]["max"]
    others = [Follower(service) for _ in range(limit)]
    with page(BROWSER, tmp_path / "profile", f"http://127.0.0.1:{service.port}/") as dashboard:
        dashboard.wait_for(POLLS)
        assert client.put("/v1/sessions/made-later").status == 201
        dashboard.wait_for(on_page("made-later"))
        for other in others:
            other.close()
        dashboard.wait_for(FOLLOWS)
        assert client.delete("/v1/sessions/made-later").status == 204
        dashboard.wait_for("!" + in_table("made-later"))


@needs_browser
def test_the_dashboard_says_that_the_service_is_gone(start, tmp_path):
    service = start()
    with page(BROWSER, tmp_path / "profile", f"http://127.0.0.1:{service.port}/") as dashboard:
        dashboard.wait_for(FOLLOWS)
        service.terminate()
        assert service.wait() == 0
        dashboard.wait_for("document.getElementById('trouble').textContent")


def cells(table):
    """The rows of a table's body, each as a list of its cells' texts."""
    return f"[...document.querySelectorAll('#{table} tr')].map((r) => [...r.cells].map((c) => c.textContent))"


FILL = {"builtin": "fill", "dtype": "f32", "args": [{"buf": "x"}, {"u64": 1024}, {"f32": 1}]}


@needs_browser
def test_the_dashboard_shows_what_is_going_on(start, tmp_path):
    service = start()
    client = service.client_in("s")
    assert client.put("/v1/sessions/s/buffers/x", {"size": 4096}).status == 201
    with page(BROWSER, tmp_path / "profile", f"http://127.0.0.1:{service.port}/") as dashboard:
        dashboard.wait_for("document.querySelectorAll('#latencies tr').length === 5")
        assert dashboard.value("document.getElementById('problems').innerText").strip() == "none"
        assert dashboard.value("document.getElementById('log').innerText") == "none"
        for _ in range(3):
            assert client.post("/v1/sessions/s/launches", FILL).status == 200
        assert client.get("/v1/sessions/nobody").status == 404
        dashboard.wait_for(on_page("3 succeeded"))
        dashboard.wait_for(on_page("session_not_found"))
        dashboard.wait_for(f"{cells('problems')}.length === 1")
        assert dashboard.value(cells("problems")) == [["session_not_found", "1", "1"]]
        device, = [row for row in dashboard.value(cells("latencies")) if row[0] == "launches, on the device"]
        assert device[1] == device[5] == "3" and all(text.startswith("≤ ") and text[-2:] in ("µs", "ms", " s") for text in device[2:5]), device
        assert "1 used on " in dashboard.value("document.getElementById('activity').innerText")
        assert client.delete("/v1/sessions/s").status == 204


@needs_browser
def test_the_dashboard_says_which_scopes_it_has_not(start, tmp_path):
    service = start("--tokens", token_file(tmp_path / "tokens.json", reader=["read"], boss=["read", "metrics", "admin"]))
    boss = service.client(Authorization="Bearer boss-secret")
    with page(BROWSER, tmp_path / "profile", f"http://127.0.0.1:{service.port}/") as dashboard:
        enter = "document.getElementById('token').value = '{}-secret'; document.getElementById('token-form').requestSubmit()"
        dashboard.wait_for(on_page("unauthenticated"))  # the script has run: from here on it handles the form
        dashboard.value(enter.format("reader"))
        dashboard.wait_for(on_page("needs the scope metrics"))
        dashboard.wait_for(on_page("needs the scope admin"))
        dashboard.wait_for(FOLLOWS)
        dashboard.wait_for(on_page("healthy"))
        dashboard.wait_for("performance.getEntriesByType('resource').filter((e) => e.name.endsWith('/v1/devices')).length >= 5")
        refusals = [line for line in boss.get("/metrics").body.decode().splitlines() if 'code="insufficient_scope"' in line]
        assert refusals == ['gpurest_problems_total{code="insufficient_scope"} 3'], "measurements, log lines, sessions of all callers: asked once each"
        dashboard.value(enter.format("boss"))
        dashboard.wait_for("document.querySelectorAll('#latencies tr').length === 5")
        dashboard.wait_for("!" + on_page("needs the scope admin"))
    boss.close()


PHONE = (390, 844)


@needs_browser
@pytest.mark.parametrize("path", ["/", "/docs"])
def test_pages_fit_a_phone(start, tmp_path, path):
    """Nothing but what scrolls by itself is wider than the screen."""
    service = start("--node", "n1")
    client = service.client()
    client.put("/v1/sessions/" + "a-session-of-a-long-name-" * 2, {"labels": {"a": "b"}}).expect(201)
    with page(BROWSER, tmp_path / "profile", f"http://127.0.0.1:{service.port}{path}") as opened:
        opened.wait_for(on_page("a-session-of-a-long-name") if path == "/" else on_page("/v1/sessions"))
        if path == "/":
            opened.wait_for("document.querySelector('#timelines polyline')")
        opened.browser.command("Emulation.setDeviceMetricsOverride", opened.session, width=PHONE[0], height=PHONE[1], deviceScaleFactor=1, mobile=False)
        opened.wait_for(f"innerWidth === {PHONE[0]} && document.documentElement.scrollWidth <= {PHONE[0]}")


@needs_browser
def test_the_dashboard_is_titled_by_the_node(start, tmp_path):
    service = start("--node", "n1")
    with page(BROWSER, tmp_path / "profile", f"http://127.0.0.1:{service.port}/") as dashboard:
        dashboard.wait_for("document.title === 'gpurest · n1'")
        assert dashboard.value("document.getElementById('title').textContent") == "gpurest · n1"


def legend(part):
    return f"[...document.querySelectorAll('#timelines .legend li')].some((one) => one.textContent.startsWith({part!r}))"


@needs_browser
def test_lines_of_the_last_minutes_by_session_and_caller(start, tmp_path):
    tokens = token_file(tmp_path / "tokens.json", ada=["read", "write", "launch", "compile"], root=["read", "admin", "metrics"])
    service = start("--tokens", tokens)
    ada = service.client(Authorization="Bearer ada-secret")
    ada.put("/v1/sessions/worked").expect(201)
    ada.put("/v1/sessions/worked/buffers/x", {"size": 3 << 20}).expect(201)
    for caller, seen, unseen in (("ada", ["worked: 3.0 MiB"], ["worked of ada", "ada: "]), ("root", ["worked of ada: 3.0 MiB", "ada: 3.0 MiB"], [])):
        with page(BROWSER, tmp_path / caller, f"http://127.0.0.1:{service.port}/") as dashboard:
            dashboard.wait_for("document.getElementById('token-form')")
            dashboard.value(f"sessionStorage.setItem('gpurest-token', '{caller}-secret'); location.reload()")
            for text in seen:
                dashboard.wait_for(legend(text))
            dashboard.wait_for("document.querySelectorAll('#timelines polyline').length >= 3")
            ada.post("/v1/sessions/worked/launches", FILL).expect(200)
            dashboard.wait_for("[...document.querySelectorAll('#timelines section')].some((s) => /^launches/.test(s.textContent) && !/at most 0.0/.test(s.textContent))")
            for text in unseen:
                assert not dashboard.value(legend(text))
