"""docker/monitoring: Prometheus accepts the rules and the configuration, and the dashboard queries only existing metrics."""
import json
import pathlib
import re
import shutil
import subprocess

import pytest

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "docker" / "monitoring"
METRIC = re.compile(r"\b((?:gpurest|http_server|process)_[a-z_]+?)(?:_bucket|_count|_sum)?\b(?=[{\[\s),]|$)")


def families():
    text = (FOLDER.parents[1] / "service" / "base" / "metrics.def").read_text()
    return set(re.findall(r'^METRIC\(\w+,\s+"(\w+)"', text, re.M))


def expressions():
    dashboard = json.loads((FOLDER / "grafana-dashboard.json").read_text())
    yield from (target["expr"] for panel in dashboard["panels"] for target in panel["targets"])
    yield from re.findall(r"expr: >?\s*(.*(?:\n {10,}.*)*)", (FOLDER / "alerts.yaml").read_text())


@pytest.mark.parametrize("arguments", [["check", "config", "prometheus.yaml"], ["check", "rules", "alerts.yaml"]])
def test_prometheus_takes_them(arguments):
    tool = shutil.which("promtool")
    if not tool:
        pytest.skip("promtool is not installed (Debian: prometheus)")
    done = subprocess.run([tool, *arguments], cwd=FOLDER, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


def test_only_metrics_that_exist_are_asked_for_and_all_of_them_are():
    asked = set()
    for expression in expressions():
        names = set(METRIC.findall(expression))
        assert names <= families(), (expression, names - families())
        asked |= names
    assert asked == families()


def test_panels_have_places_of_their_own():
    panels = json.loads((FOLDER / "grafana-dashboard.json").read_text())["panels"]
    assert len({panel["id"] for panel in panels}) == len({(p["gridPos"]["x"], p["gridPos"]["y"]) for p in panels}) == len(panels)
