"""IPython and Jupyter: `%load_ext gpurest` gives `%gpurest`, `%%cuda`, and short tracebacks of this package's exceptions. Nothing here imports IPython."""
from __future__ import annotations

import shlex
from types import TracebackType
from typing import Any, Callable, Dict, List, Optional

from ._session.client import Client, connect
from ._session.default import default_client, set_default
from ._session.rawkernel import RawKernel
from ._shown import html
from ._shown.printing import set_printf
from .errors import ArgumentError, GpurestError

_PACKAGE = __name__.partition(".")[0]
USAGE = """%gpurest                     the service's devices
%gpurest session             the default session
%gpurest sessions            all sessions of this caller
%gpurest connect URL         uses the service there from now on
%gpurest reset               gives the default session a new worker; what was in it is lost
%gpurest printf on|off       whether what kernels print appears under the cell
%gpurest tracebacks short|full

%%cuda [OPTION...]           compiles the cell; its kernels become variables, called as kernel[grid, block](…)"""


class Shown:
    """Text, and the same as HTML for notebooks."""

    def __init__(self, text: str, markup: Optional[str] = None) -> None:
        self._text, self._markup = text, markup

    def __repr__(self) -> str:
        return self._text

    def _repr_html_(self) -> Optional[str]:
        return self._markup


def _devices() -> Shown:
    client = default_client()
    rows = [html.device_row(one) for one in client.devices()]
    return _listed(f"gpurest, {client.url}", html.DEVICE_HEAD, rows)


def _listed(title: str, head: Any, rows: List[Any]) -> Shown:
    lines = ["  ".join(str(cell) for cell in row) for row in rows]
    return Shown("\n".join([title, *lines]), html.table(title, head, rows))


def _sessions() -> Shown:
    client = default_client()
    rows = [(one["id"], one["device"], one["state"]) for one in client.sessions()]
    return _listed(f"gpurest, {client.url}", ("session", "device", "state"), rows)


def _session() -> Shown:
    session = default_client().default_session
    return _listed(f"gpurest session {session.id}", (), list(html.session_rows(session.info())))


def _cut(trace: Optional[TracebackType]) -> Optional[TracebackType]:
    """The same up to the last frame that is not of this package: the line of the user's that failed."""
    frames: List[TracebackType] = []
    while trace is not None:
        frames.append(trace)
        trace = trace.tb_next
    while len(frames) > 1 and str(frames[-1].tb_frame.f_globals.get("__name__", "")).partition(".")[0] == _PACKAGE:
        frames.pop()
    made: Optional[TracebackType] = None
    for one in reversed(frames):
        made = TracebackType(made, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return made


class Extension:
    """What one shell has loaded."""

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self.before = (shell.custom_exceptions, getattr(shell, "CustomTB", None))
        self.short = True
        self.client: Optional[Client] = None  # of %gpurest connect
        self.verbs: Dict[str, Callable[..., Any]] = {"": _devices, "devices": _devices, "session": _session, "sessions": _sessions, "connect": self.connect,
                                                    "reset": self.reset, "printf": self.printf, "tracebacks": self.tracebacks, "help": lambda: Shown(USAGE)}

    def begin(self) -> None:
        """Gives the shell the magics and the short tracebacks."""
        self.shell.register_magic_function(self.gpurest, "line", "gpurest")
        self.shell.register_magic_function(self.cuda, "cell", "cuda")
        self.shell.set_custom_exc((GpurestError,), self.show_error)

    def end(self) -> None:
        """Takes them back."""
        self.shell.magics_manager.magics["line"].pop("gpurest", None)
        self.shell.magics_manager.magics["cell"].pop("cuda", None)
        self.shell.set_custom_exc(*self.before)
        self._leave()

    def _leave(self) -> None:
        if self.client is not None:
            set_default(None)
            self.client.close()
            self.client = None

    # ---- magics ----

    def gpurest(self, line: str) -> Any:
        """%gpurest: shows the service's devices; %gpurest help lists what else there is."""
        verb, *values = shlex.split(line) or [""]
        if verb not in self.verbs:
            raise ArgumentError(f"%gpurest has no {verb!r}; there are:\n{USAGE}")
        try:
            return self.verbs[verb](*values)
        except TypeError as error:
            if isinstance(error, GpurestError):
                raise
            raise ArgumentError(f"%gpurest {verb} takes other arguments:\n{USAGE}") from None

    def connect(self, url: str) -> Shown:
        """Uses the service at `url` from now on, for everything that names no client."""
        client = connect(url)
        client.version()  # it is there, and takes the token
        self._leave()
        self.client = client
        set_default(client)
        return _devices()

    def reset(self) -> Shown:
        """Gives the default session a new worker."""
        session = default_client().default_session
        session.reset()
        return Shown(f"session {session.id} has a new worker; what was in it is lost")

    def printf(self, value: str) -> None:
        """Whether what kernels print appears under the cell."""
        set_printf(_choice("printf", value, ("off", "on")) == 1)

    def tracebacks(self, value: str) -> None:
        """Short ones end at the user's line, full ones go on within this package."""
        self.short = _choice("tracebacks", value, ("full", "short")) == 1

    def cuda(self, line: str, cell: str) -> Shown:
        """%%cuda [OPTION...]: compiles the cell as CUDA C++ in the default session, with options as nvcc's. Each of its kernels becomes a variable: a
        RawKernel, which is compiled again where the session is another one by then."""
        options = shlex.split(line)
        module = default_client().default_session.module(cell, options)
        names = [name for name in module.kernels if name.isidentifier()]
        for name in names:
            self.shell.user_ns[name] = RawKernel(cell, name, options)
        return Shown("kernels: " + ", ".join(repr(module[name]).partition(" ")[2][:-1] for name in names) if names else "the cell has no kernel")

    # ---- errors ----

    def show_error(self, shell: Any, kind: Any, error: BaseException, trace: Any, tb_offset: Optional[int] = None) -> Any:
        """IPython's own traceback, without the frames of this package."""
        if self.short:
            trace = _cut(trace)
            cause = error.__cause__
            while cause is not None:
                cause.__traceback__ = _cut(cause.__traceback__)
                cause = cause.__cause__
        lines = shell.InteractiveTB.structured_traceback(kind, error, trace, tb_offset=tb_offset)
        shell._showtraceback(kind, error, lines)
        return lines


def _choice(verb: str, value: str, known: Any) -> int:
    if value not in known:
        raise ArgumentError(f"%gpurest {verb} is {' or '.join(known)}, not {value!r}")
    return int(known.index(value))


_loaded: Dict[int, Extension] = {}  # by the shell's identity


def load(shell: Any) -> None:
    """For `%load_ext gpurest`."""
    if id(shell) not in _loaded:
        _loaded[id(shell)] = Extension(shell)
        _loaded[id(shell)].begin()


def unload(shell: Any) -> None:
    """For `%unload_ext gpurest`: everything is as before."""
    extension = _loaded.pop(id(shell), None)
    if extension is not None:
        extension.end()
