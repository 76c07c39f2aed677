"""Where processes without an MPI launcher meet, from `init_method` and torchrun's variables."""

from __future__ import annotations

import contextlib
import hashlib
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

__all__ = ["Rendezvous", "in_query", "rendezvous_of"]

# If torchrun's own server listens at MASTER_PORT, the ranks meet at one of this many ports after
# it.
PORTS_AFTER = 16
_LEAST_PORT = 1024


@dataclass(frozen=True)
class Rendezvous:
    """A place to meet.

    Attributes:
        host: the host of rank 0; empty if the file gives it.
        ports: rank 0 listens at the first free one of these.
        name: distinguishes the program from others that meet on the same machine.
        file: contains rank 0's address, if host and ports are not given.
    """

    host: str
    ports: tuple[int, ...]
    name: str
    file: Path | None = None

    def __str__(self) -> str:
        if self.file is not None:
            return f"file://{self.file}"
        last = f" to {self.ports[-1]}" if len(self.ports) > 1 else ""
        return f"{self.host}:{self.ports[0]}{last}"

    def tell(self, port: int) -> None:
        """Write rank 0's address to the file."""
        if self.file is None:
            return
        begun = self.file.with_name(f"{self.file.name}.{os.getpid()}")
        begun.write_text(f"{socket.gethostname()} {port}\n")
        begun.replace(self.file)

    def places(self) -> list[tuple[str, int]]:
        """The possible addresses of rank 0, as far as they are known."""
        if self.file is None:
            return [(self.host, port) for port in self.ports]
        with contextlib.suppress(OSError, ValueError):
            host, port = self.file.read_text().split()
            return [("127.0.0.1" if host == socket.gethostname() else host, int(port))]
        return []

    def forget(self) -> None:
        """Remove the file after all have met, so that another program may use it."""
        if self.file is not None:
            self.file.unlink(missing_ok=True)


def in_query(init_method: str | None, rank: int, world_size: int) -> tuple[int, int]:
    """Rank and size from a URL: ``"tcp://host:29500?rank=0&world_size=2"``.

    >>> from plugrad_distributed.launching.rendezvous import in_query
    >>> in_query("tcp://localhost:29500?rank=1&world_size=2", -1, -1)
    (1, 2)
    """
    given = parse_qs(urlsplit(init_method or "").query)
    found = []
    for name, value in (("rank", rank), ("world_size", world_size)):
        text = given.get(name, ["-1"])[0]
        if value == -1 and not text.lstrip("-").isdecimal():
            raise ValueError(
                f"init_process_group(): {name} of init_method must be a number, got {init_method!r}"
            )
        found.append(int(text) if value == -1 else value)
    return found[0], found[1]


def rendezvous_of(init_method: str | None, environment: Mapping[str, str]) -> Rendezvous:
    """The meeting place for an `init_method`.

    Raises:
        ValueError: it has an unknown form, or environment variables are missing.
    """
    method = init_method or "env://"
    url = urlsplit(method)
    if url.scheme == "env":
        return _of_environment(environment)
    if url.scheme == "tcp":
        try:
            port = url.port
        except ValueError:
            port = None
        if not url.hostname or port is None:
            raise ValueError(
                "init_process_group(): init_method must name host and port, "
                f"'tcp://host:29500', got {init_method!r}"
            )
        return Rendezvous(url.hostname, (port,), _name(url.hostname, str(port)))
    if url.scheme == "file":
        path = unquote(url.path)
        if url.netloc or not path.startswith("/"):
            raise ValueError(
                "init_process_group(): init_method must have the whole path of a file, "
                f"'file:///shared/meeting', got {init_method!r}"
            )
        return Rendezvous("", (), _name(path), Path(path))
    raise ValueError(
        "init_process_group(): init_method must be 'env://', 'tcp://host:port' or "
        f"'file:///path', got {init_method!r}"
    )


def _of_environment(environment: Mapping[str, str]) -> Rendezvous:
    for name in ("MASTER_ADDR", "MASTER_PORT"):
        if not environment.get(name):
            raise ValueError(
                f"init_process_group(): environment variable {name} expected, but not set: "
                "processes that neither MPI nor torchrun started need it, or init_method="
                "'tcp://host:port'; `plugrad launch -n 2 program.py` needs nothing"
            )
    text = environment["MASTER_PORT"]
    if not text.isdecimal() or not 0 < int(text) < 1 << 16:
        raise ValueError(
            f"init_process_group(): MASTER_PORT must be a port, 1 to 65535, got {text!r}"
        )
    port = int(text)
    # A restarted program must not meet remains of its last run.
    which = [environment.get(f"TORCHELASTIC_{name}", "") for name in ("RUN_ID", "RESTART_COUNT")]
    ports: tuple[int, ...] = (port,)
    if environment.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        count = (1 << 16) - _LEAST_PORT
        ports = tuple(
            _LEAST_PORT + (port - _LEAST_PORT + step) % count for step in range(1, PORTS_AFTER + 1)
        )
    return Rendezvous(environment["MASTER_ADDR"], ports, _name(text, *which))


def _name(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
