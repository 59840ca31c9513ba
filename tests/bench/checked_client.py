"""The tests' client for measurements, whose refusals end them."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "service"))

from local_client import LocalClient  # noqa: E402
from service_under_test import Client  # noqa: E402


class Wrong(RuntimeError):
    """An answer that is not what it must be."""


class Checked:
    def must(self, method, path, body=None, expected=range(200, 300), **headers):
        answer = self.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
        if answer.status not in expected:
            raise Wrong(f"{method} {path}: {answer}")
        return answer


class CheckedClient(Checked, Client):
    pass


class CheckedLocalClient(Checked, LocalClient):
    pass
