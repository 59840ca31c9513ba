"""Bytes on a socket: addresses, connections, HTTP/1.1, the batch frame. Knows of no session."""
