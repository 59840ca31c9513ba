"""Sessions and what is in them. `requests` says what is sent; what takes several requests is a generator of them, which the clients drive."""
