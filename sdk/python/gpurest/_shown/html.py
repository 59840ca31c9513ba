"""Objects as tables in notebooks. Each function returns HTML whose text is escaped; nothing of it is loaded from elsewhere."""
from __future__ import annotations

from html import escape
from typing import Any, Iterable, Sequence

from .._transport.progress import bytes_text


def table(title: str, head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A caption, a line of names (none: no such line), and lines of values."""
    names = "<tr>" + "".join(f"<th>{escape(name)}</th>" for name in head) + "</tr>" if head else ""
    lines = "".join("<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><caption>{escape(title)}</caption>{names}{lines}</table>"


def device_row(told: Any) -> Sequence[Any]:
    """Of a device as the service describes it, for DEVICE_HEAD."""
    memory = told.get("memory") or {}
    return (told.get("id"), told.get("name"), told.get("state"), _bytes(memory.get("total_bytes")), _bytes(memory.get("free_bytes")),
            _known(told.get("utilization_pct"), " %"), _known(told.get("temperature_c"), " °C"))


DEVICE_HEAD = ("device", "name", "state", "memory", "free", "busy", "temperature")


def session_rows(told: Any) -> Sequence[Sequence[Any]]:
    """Of a session as the service describes it."""
    usage = told.get("usage") or {}
    return (("device", told.get("device")), ("state", told.get("state")), ("memory of its buffers", _bytes(usage.get("memory_bytes"))),
            ("buffers", usage.get("buffers")), ("modules", usage.get("modules")), ("launches so far", usage.get("launches")),
            ("idle limit", _known(told.get("idle_timeout_s"), " s")), ("made at", told.get("created_at")))


def _bytes(count: Any) -> str:
    return "unknown" if count is None else bytes_text(count)


def _known(value: Any, unit: str) -> str:
    return "unknown" if value is None else f"{value}{unit}"
