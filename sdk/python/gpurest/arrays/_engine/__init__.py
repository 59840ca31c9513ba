"""How expressions of arrays become requests: the graph, its plan, generated and built-in kernels."""
