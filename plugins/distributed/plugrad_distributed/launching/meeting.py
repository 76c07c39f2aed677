"""Makes processes that torchrun, `multiprocessing` or a script started the ranks of one MPI
program.

Rank 0 starts a server, `pmi`, to which all ranks connect. Then each passes its connection to MPICH,
which finds the other ranks through PMI-1, as under mpiexec.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from plugrad_distributed.errors import DistNetworkError, DistTimeoutError
from plugrad_distributed.launching import pmi
from plugrad_distributed.launching.rendezvous import Rendezvous

__all__ = ["met"]

# Seconds: for a connection, and for the greeting of a server, which comes at once if it is ours.
CONNECT = 5.0
GREETED = 2.0
PAUSE = 0.02
# The least time to allow for MPI's start.
MPI_START = 30.0
# The server itself reports late ranks; a rank waits this much longer for that report.
LATER = 5.0
# Variables that MPICH reads first: each would connect it to another program.
_OTHERS = ("PMI_PORT", "PMI_ID", "PMI_SPAWNED", "PMI_KVS", "PMI_PROCESS_MAPPING")


@contextlib.contextmanager
def met(place: Rendezvous, rank: int, size: int, limit: float) -> Iterator[None]:
    """Meet the other ranks; if MPI starts inside this block, it connects to them.

    Args:
        place: the place to meet.
        rank: this process's number of `size`.
        limit: seconds within which all ranks must arrive.

    Raises:
        DistTimeoutError: a rank did not arrive.
        DistNetworkError: there is no free port, or the ranks disagree about ranks or size.
    """
    end = time.monotonic() + limit
    if rank == 0:
        _serve(place, size, limit)
    connection = _find(place, rank, size, end, limit)
    _hear(connection, place, rank, end)
    if rank == 0:
        place.forget()
    connection.settimeout(None)
    # MPI keeps it open until its end, which comes after that of Python's objects.
    told = {"PMI_FD": str(connection.detach()), "PMI_RANK": str(rank), "PMI_SIZE": str(size)}
    before = {name: os.environ.pop(name) for name in (*told, *_OTHERS) if name in os.environ}
    os.environ.update(told)
    try:
        with _ended_if_late(max(limit, MPI_START)):
            yield
    finally:
        # Programs that this one starts are not ranks.
        for name in told:
            os.environ.pop(name, None)
        os.environ.update(before)


@contextlib.contextmanager
def _ended_if_late(limit: float) -> Iterator[None]:
    """A block that ends the process with a traceback if it takes longer: MPI's start waits without
    a limit for a rank that has ended, and holds Python's lock."""
    armed = False
    # The error stream may have no file.
    with contextlib.suppress(AttributeError, OSError, ValueError, RuntimeError):
        faulthandler.dump_traceback_later(limit, exit=True, file=sys.stderr)
        armed = True
    try:
        yield
    finally:
        if armed:
            faulthandler.cancel_dump_traceback_later()


def _serve(place: Rendezvous, size: int, limit: float) -> None:
    """Start the server, which ends once all ranks have closed their connections."""
    with _listener(place) as listener:
        listener.set_inheritable(True)
        descriptor = listener.fileno()
        command = [sys.executable, "-I", str(Path(pmi.__file__)), str(descriptor)]
        try:
            subprocess.run(
                [*command, place.name, str(size), str(limit)],
                pass_fds=[descriptor],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                # Readers of rank 0's output must not wait for the server.
                stderr=subprocess.DEVNULL,
                check=True,
            )
        except (OSError, subprocess.CalledProcessError) as error:
            raise DistNetworkError(
                f"init_process_group(): rank 0 cannot start the server of the meeting: {error}"
            ) from error
        place.tell(listener.getsockname()[1])


def _listener(place: Rendezvous) -> socket.socket:
    """A socket at the first free port of the place."""
    one_machine = place.host in ("localhost", "127.0.0.1")
    family = socket.AF_INET6 if ":" in place.host else socket.AF_INET
    for port in place.ports or (0,):
        try:
            address = ("127.0.0.1" if one_machine else "", port)
            return socket.create_server(address, family=family, backlog=1024)
        except OSError as error:
            reason = error
    raise DistNetworkError(
        f"init_process_group(): rank 0 cannot listen at {place}: {reason}. Another program has the "
        "port, or this one's last run has not ended: choose another one (MASTER_PORT, torchrun's "
        "--master-port or init_method)"
    ) from reason


def _find(place: Rendezvous, rank: int, size: int, end: float, limit: float) -> socket.socket:
    """Connect to the server of this program.

    Raises:
        DistTimeoutError: it did not start.
    """
    told = ""
    while time.monotonic() < end:
        for host, port in place.places():
            connection, told = _try(host, port, place.name, told)
            if connection is not None:
                connection.sendall(f"{rank} {size} {socket.gethostname()}\n".encode())
                return connection
        time.sleep(PAUSE)
    detail = f": {told}" if told else ""
    raise DistTimeoutError(
        f"init_process_group(): rank 0 did not come to {place} within {limit:g} s{detail}"
    )


def _try(host: str, port: int, name: str, told: str) -> tuple[socket.socket | None, str]:
    """A connection to the program's server, or the reason why there is none."""
    try:
        connection = socket.create_connection((host, port), CONNECT)
    except OSError as error:
        return None, told or f"{host}:{port}: {error}"
    connection.settimeout(GREETED)
    try:
        greeting = _line(connection)
    except OSError:
        greeting = ""
    if greeting.startswith(f"{pmi.GREETING} {name} "):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection, ""
    connection.close()
    return None, f"another program listens at {host}:{port}"


def _hear(connection: socket.socket, place: Rendezvous, rank: int, end: float) -> None:
    """Wait until the server reports that all ranks have arrived."""
    connection.settimeout(max(end - time.monotonic(), 0.0) + LATER)
    try:
        word = _line(connection)
    except OSError:
        word = ""
    if word == "go":
        return
    connection.close()
    why = word.removeprefix("no ") or f"rank 0, which others meet at, has ended at {place}"
    kind = DistTimeoutError if "did not come within" in why else DistNetworkError
    raise kind(f"init_process_group() on rank {rank}: {why}")


def _line(connection: socket.socket) -> str:
    """The next line, read byte by byte, because the bytes after it are for MPICH."""
    found = b""
    while not found.endswith(b"\n") and len(found) < 1000:
        byte = connection.recv(1)
        if not byte:
            break
        found += byte
    return found.decode(errors="replace").rstrip("\n")
