"""Makes processes that torchrun, `multiprocessing` or a script started the ranks of one MPI
program.

Rank 0 starts a server, `pmi`, where all ranks meet. Each has two connections to it: one for joining
and for messages about the others until MPI has started, and one that it gives to MPICH, which finds
the other ranks by PMI-1 as it does under mpiexec.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from plugrad_distributed.errors import DistNetworkError, DistTimeoutError
from plugrad_distributed.launching import pmi
from plugrad_distributed.launching.connections import next_line, readable
from plugrad_distributed.launching.rendezvous import Rendezvous
from plugrad_distributed.launching.watching import watched

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
    """Meet the other ranks; MPI, if `watching.started` starts it within, finds itself among them.

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
    for_mpi = _second(connection, place, rank, end)
    try:
        table = _hear(connection, place, rank, end)
    except BaseException:
        if for_mpi is not None:
            for_mpi.close()
        raise
    # The server begins once it has both connections of all ranks.
    assert for_mpi is not None
    if rank == 0:
        place.forget()
    for_mpi.settimeout(None)
    # MPI keeps it open until it ends, after Python's objects.
    told = {"PMI_FD": str(for_mpi.detach()), "PMI_RANK": str(rank), "PMI_SIZE": str(size)}
    before = {name: os.environ.pop(name) for name in (*told, *_OTHERS) if name in os.environ}
    os.environ.update(told)
    try:
        with watched(connection, rank, max(limit, MPI_START), table):
            yield
    finally:
        # Programs that this one starts are not ranks.
        for name in told:
            os.environ.pop(name, None)
        os.environ.update(before)


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


def _second(first: socket.socket, place: Rendezvous, rank: int, end: float) -> socket.socket | None:
    """A connection for MPICH to the server that another one leads to; None if the server reports on
    the first one that there is no meeting, or has ended."""
    host, port = first.getpeername()[:2]
    while time.monotonic() < end and not readable((first,), 0.0):
        connection, _ = _try(host, port, place.name, "")
        if connection is not None:
            with contextlib.suppress(OSError):
                connection.sendall(f"{pmi.FOR_MPI} {rank}\n".encode())
            return connection
        time.sleep(PAUSE)
    return None


def _try(host: str, port: int, name: str, told: str) -> tuple[socket.socket | None, str]:
    """A connection to the program's server, or the reason why there is none."""
    try:
        connection = socket.create_connection((host, port), CONNECT)
    except OSError as error:
        return None, told or f"{host}:{port}: {error}"
    connection.settimeout(GREETED)
    try:
        greeting = next_line(connection)
    except OSError:
        greeting = ""
    if greeting.startswith(f"{pmi.GREETING} {name} "):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection, ""
    connection.close()
    return None, f"another program listens at {host}:{port}"


def _hear(connection: socket.socket, place: Rendezvous, rank: int, end: float) -> str:
    """Wait until the server reports that all ranks have arrived; the name of MPICH's table."""
    connection.settimeout(max(end - time.monotonic(), 0.0) + LATER)
    try:
        word = next_line(connection)
    except OSError:
        word = ""
    if word.startswith("go "):
        return word.removeprefix("go ")
    connection.close()
    why = word.removeprefix("no ") or f"rank 0, which others meet at, has ended at {place}"
    kind = DistTimeoutError if "did not come within" in why else DistNetworkError
    raise kind(f"init_process_group() on rank {rank}: {why}")
