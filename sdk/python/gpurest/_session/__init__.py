"""Sessions and what is in them, for programs that wait: a request each, described in `requests`."""
