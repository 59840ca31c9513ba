"""Envoy's configuration: envoy.json, which it begins with, and what it takes up when it is written anew: secrets.json (certificate), clusters.json
(nodes) and routes.json (which request goes where).

An id names its node: n2.train, s_n2_..., x_n2_... Requests with such an id go to that node and never to another one. Envoy remembers nothing: a
caller's name of a session, or idempotency key, goes to the node of its hash, up or down, so that it never has two owners."""
import os

FOREVER_S = 3700  # kernels may run for an hour, and their clients wait; the nodes end what is too slow
RETRY_MS = 2000
REGEX_SIZE_MAX = 400  # in RE2's instructions: a node's name of 48 characters stands in one twice
OWN_ID = "[a-z]_{node}_[0-9A-Za-z]{{22}}"  # chosen by the service; those of clients begin with the node and a dot
IDS = "/v1/(sessions|run|admin/sessions|cache/warm)"
OF_ANY_NODE = "[a-z0-9-]+"
BROKEN = ["UC", "UPE", "UR", "LR"]  # flags of Envoy: the connection broke when the request had begun


def type_of(name):
    return {"@type": "type.googleapis.com/envoy." + name}


def seconds(number):
    return f"{number}s"


# ---- nodes ----

def address_of(text):
    host, _, port = text.rpartition(":")
    return {"socket_address": {"address": host.strip("[]") or "0.0.0.0", "port_value": int(port)}}


def endpoint(arguments, node):
    """hostname: what the node's certificate must name. hash_key: names stay where they are when a node gets another address."""
    name, address, _ = node
    return {"endpoint": {"address": address_of(address), "hostname": arguments.node_name or name},
            "metadata": {"filter_metadata": {"envoy.lb": {"hash_key": name}}}}


def transport(arguments):
    socket = {"name": "envoy.transport_sockets.raw_buffer", "typed_config": type_of("extensions.transport_sockets.raw_buffer.v3.RawBuffer")}
    if arguments.node_ca:
        socket = {"name": "envoy.transport_sockets.tls",
                  "typed_config": {**type_of("extensions.transport_sockets.tls.v3.UpstreamTlsContext"), "auto_host_sni": True, "auto_sni_san_validation": True,
                                   "common_tls_context": {"validation_context": {"trusted_ca": {"filename": arguments.node_ca}}}}}
    if arguments.no_proxy_protocol:
        return socket
    return {"name": "envoy.transport_sockets.upstream_proxy_protocol",
            "typed_config": {**type_of("extensions.transport_sockets.proxy_protocol.v3.ProxyProtocolUpstreamTransport"),
                             "config": {"version": "V2"}, "transport_socket": socket}}


def cluster(arguments, name, nodes, **more):
    options = {**type_of("extensions.upstreams.http.v3.HttpProtocolOptions"), "explicit_http_config": {"http_protocol_options": {}},
               "common_http_protocol_options": {"idle_timeout": seconds(20)}}
    return {**type_of("config.cluster.v3.Cluster"), "name": name, "type": "STRICT_DNS", "connect_timeout": seconds(1),
            "load_assignment": {"cluster_name": name, "endpoints": [{"lb_endpoints": [endpoint(arguments, node) for node in nodes]}]},
            "transport_socket": transport(arguments), "connection_pool_per_downstream_connection": not arguments.no_proxy_protocol,
            "circuit_breakers": {"thresholds": [{"max_connections": 16384, "max_pending_requests": 16384, "max_requests": 16384, "max_retries": 1024}]},
            "common_lb_config": {"healthy_panic_threshold": {"value": 0}, "update_merge_window": "0s"},
            "typed_extension_protocol_options": {"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": options}, **more}


def clusters(arguments, nodes):
    """any: those that take new sessions. /lbz is 404 in a drain: the node gets nothing new, and keeps its sessions."""
    check = {"timeout": seconds(2), "interval": seconds(1), "no_traffic_interval": seconds(1), "unhealthy_edge_interval": "0.2s", "unhealthy_threshold": 2,
             "healthy_threshold": 2, "http_health_check": {"path": "/lbz", "host": "localhost"}}
    return [cluster(arguments, "any", nodes, lb_policy="LEAST_REQUEST", health_checks=[check]),
            cluster(arguments, "by_key", nodes, lb_policy="RING_HASH", ring_hash_lb_config={"minimum_ring_size": 1024}),
            *(cluster(arguments, "node_" + node[0], [node]) for node in nodes)]


# ---- routes ----

def regex(pattern):
    return {"safe_regex": {"regex": pattern}}


def header(name, **match):
    return {"name": name, **match}


def to(where, **more):
    return {"route": {"cluster": where, "timeout": "0s", "idle_timeout": seconds(FOREVER_S), **more}}


def ids_of(node):
    return regex(f"{IDS}/({node}\\.[^/]+|{OWN_ID.format(node=node)})(/.*)?")


def hashed(*policies):
    return [{"header": policy} for policy in ({"header_name": "authorization"}, *policies)]


def again(*when):
    """On another node."""
    return {"retry_on": ",".join(when), "retriable_status_codes": [503], "num_retries": 2, "host_selection_retry_max_attempts": 8,
            "retry_host_predicate": [{"name": "envoy.retry_host_predicates.previous_hosts",
                                      "typed_config": type_of("extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate")}]}


def routes(nodes):
    """The first that fits."""
    told = ", ".join(f"{name} {' ' + url if url else ''}".rstrip() for name, _, url in nodes)
    tell = {"request_headers_to_add": [{"header": {"key": "Gpurest-Nodes", "value": told}, "append_action": "OVERWRITE_IF_EXISTS_OR_ADD"}]}
    unknown = {"direct_response": {"status": 404}}
    any_node = to("any", retry_policy=again("connect-failure", "refused-stream"))
    for name, _, _ in nodes:
        named = [header("Gpurest-Node", string_match={"exact": name})]
        yield {"match": {"path": "/v1/nodes", "headers": named}, **to("node_" + name), **tell}
        yield {"match": {"prefix": "/", "headers": named}, **to("node_" + name)}
    yield {"match": {"prefix": "/", "headers": [header("Gpurest-Node", present_match=True)]}, **unknown}
    for name, _, _ in nodes:
        yield {"match": ids_of(name), **to("node_" + name)}
    yield {"match": ids_of(OF_ANY_NODE), **unknown}
    name_in_path = {"header_name": ":path", "regex_rewrite": {"pattern": {"regex": "^/v1/sessions/([^/?]+).*"}, "substitution": "\\1"}}
    yield {"match": regex("/v1/sessions/[^/]+(/.*)?"), **to("by_key", hash_policy=hashed(name_in_path))}
    post = header(":method", string_match={"exact": "POST"})
    keyed = hashed({"header_name": ":path"}, {"header_name": "Idempotency-Key"})
    yield {"match": {"prefix": "/", "headers": [post, header("Idempotency-Key", present_match=True)]}, **to("by_key", hash_policy=keyed)}
    # Of a new session 503 says that nothing was done.
    yield {"match": {"path": "/v1/sessions", "headers": [post]}, **to("any", retry_policy=again("connect-failure", "refused-stream", "retriable-status-codes"))}
    yield {"match": {"path": "/v1/nodes"}, **any_node, **tell}
    yield {"match": {"prefix": "/"}, **any_node}


# ---- answers of the router itself ----

def problem(fits, status, code, retryable, detail):
    document = {"type": "/problems/" + code, "title": detail, "status": status, "detail": detail, "instance": "%PATH(NQ)%", "code": code,
                "request_id": "%REQ(X-REQUEST-ID)%", "retryable": retryable, "retry_after_ms": RETRY_MS if status == 503 else None, "errors": [],
                "cuda": None, "compile": None, "limit": None}
    headers = {"X-Request-Id": "%REQ(X-REQUEST-ID)%", **({"Retry-After": str(RETRY_MS // 1000)} if status == 503 else {})}
    return {"filter": fits, "status_code": status, "body_format_override": {"json_format": document, "content_type": "application/problem+json"},
            "headers_to_add": [{"header": {"key": key, "value": value}} for key, value in headers.items()]}


def is_status(number):
    return {"status_code_filter": {"comparison": {"op": "EQ", "value": {"default_value": number, "runtime_key": "unused"}}}}


def problems():
    """Documents like the nodes' own. 503: nothing was done. 502 and 504: nobody knows."""
    return [problem(is_status(404), 404, "session_not_found", False, "the fleet has no such node"),
            problem({"response_flag_filter": {"flags": BROKEN}}, 502, "device_error", False,
                    "the node's connection has broken; what was asked for may have been done"),
            problem(is_status(503), 503, "not_ready", True, "the node does not answer; nothing was done"),
            problem(is_status(504), 504, "execution_timeout", False, "the node has not answered for more than an hour")]


# ---- the listener ----

def from_file(folder, name):
    """Read again when anything is moved in its folder: the file, or the link that Kubernetes has to the files of a ConfigMap."""
    return {"path_config_source": {"path": os.path.join(folder, name), "watched_directory": {"path": folder}}, "resource_api_version": "V3"}


def filters(folder):
    """The connection manager, with as little of its own about requests as it can: they and their answers pass as they are."""
    return [{"name": "envoy.filters.network.http_connection_manager",
             "typed_config": {
                 **type_of("extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"), "stat_prefix": "gpurest", "codec_type": "HTTP1",
                 "rds": {"route_config_name": "gpurest", "config_source": from_file(folder, "routes.json")},
                 "http_filters": [{"name": "envoy.filters.http.router",
                                   "typed_config": {**type_of("extensions.filters.http.router.v3.Router"), "suppress_envoy_headers": True}}],
                 "use_remote_address": True, "skip_xff_append": True, "preserve_external_request_id": True, "proxy_100_continue": True,
                 "server_header_transformation": "PASS_THROUGH", "stream_idle_timeout": seconds(FOREVER_S), "request_headers_timeout": seconds(10),
                 "request_id_extension": {"typed_config": {**type_of("extensions.request_id.uuid.v3.UuidRequestIdConfig"), "pack_trace_reason": False}},
                 "common_http_protocol_options": {"idle_timeout": seconds(60)},
                 "http_protocol_options": {"accept_http_10": True, "default_host_for_http_10": "localhost"},
                 "local_reply_config": {"mappers": problems()},
                 "access_log": [{"name": "envoy.access_loggers.stderr",
                                 "typed_config": type_of("extensions.access_loggers.stream.v3.StderrAccessLog")}]}}]


def listener(arguments, folder):
    chain = {"filters": filters(folder)}
    if arguments.cert:
        secret = {"name": "router", "sds_config": from_file(folder, "secrets.json")}
        chain["transport_socket"] = {"name": "envoy.transport_sockets.tls", "typed_config": {
            **type_of("extensions.transport_sockets.tls.v3.DownstreamTlsContext"),
            "common_tls_context": {"alpn_protocols": ["http/1.1"], "tls_params": {"tls_minimum_protocol_version": "TLSv1_2"},
                                   "tls_certificate_sds_secret_configs": [secret]}}}
    return {"name": "gpurest", "address": address_of(arguments.bind), "filter_chains": [chain]}


def secrets(cert):
    """The router takes up a new certificate when a file is moved into its folder, as those who renew certificates do."""
    file = {"filename": os.path.abspath(cert)}
    return {**type_of("extensions.transport_sockets.tls.v3.Secret"), "name": "router",
            "tls_certificate": {"certificate_chain": file, "private_key": file, "watched_directory": {"path": os.path.dirname(os.path.abspath(cert))}}}


def bootstrap(arguments, folder):
    bound = {**type_of("extensions.resource_monitors.downstream_connections.v3.DownstreamConnectionsConfig"), "max_active_downstream_connections": 4000}
    return {"node": {"id": "router", "cluster": "gpurest"}, "admin": {"address": {"pipe": {"path": arguments.socket, "mode": 0o600}}},
            "static_resources": {"listeners": [listener(arguments, folder)]},
            "layered_runtime": {"layers": [{"name": "fixed", "static_layer": {"re2": {"max_program_size": {"error_level": REGEX_SIZE_MAX}}}}]},
            "dynamic_resources": {"cds_config": from_file(folder, "clusters.json")},
            "overload_manager": {"resource_monitors": [{"name": "envoy.resource_monitors.global_downstream_max_connections", "typed_config": bound}]}}


def configuration(arguments, nodes):
    """{file name: document}, in the order in which they are to be written: clusters before the routes to them."""
    folder = os.path.abspath(arguments.installed_at or arguments.output)
    table = {**type_of("config.route.v3.RouteConfiguration"), "name": "gpurest",
             "virtual_hosts": [{"name": "gpurest", "domains": ["*"], "routes": list(routes(nodes))}]}
    files = {"secrets.json": {"resources": [secrets(arguments.cert)]}} if arguments.cert else {}
    return {**files, "clusters.json": {"resources": clusters(arguments, nodes)}, "routes.json": {"resources": [table]},
            "envoy.json": bootstrap(arguments, folder)}
