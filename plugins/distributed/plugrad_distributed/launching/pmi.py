"""Server of PMI-1, the protocol through which MPICH finds the processes of one program. Rank 0 runs
this file as a program, for processes that torchrun or `multiprocessing` started.

It is not a thread of rank 0, because it must report rank 0's end to the others, and MPI's end holds
Python's lock. Only the standard library is imported, so that it starts soon. First the ranks meet.
Then MPICH talks over a second connection of each rank, while the first one reports ranks that end:

             first connection                     second connection
    server   "plugrad-meeting 1 NAME SIZE"        "plugrad-meeting 1 NAME SIZE"
    rank     "RANK SIZE HOST"                     "mpi RANK"
    server   "go TABLE", once all have come,
             or "no WHY"
    MPICH                                         "cmd=init pmi_version=1 pmi_subversion=1", ...
    server   "lost RANK", if one has ended        as in MPICH's `src/pmi`
    rank     "started", once MPI has
"""

from __future__ import annotations

import contextlib
import glob
import itertools
import os
import secrets
import selectors
import signal
import socket
import sys
import time
from collections.abc import Callable, Collection, Sequence

__all__ = ["FOR_MPI", "GREETING", "Server", "forget_memory", "mapping"]

GREETING = "plugrad-meeting 1"
# A rank's message on the connection that it gives to MPICH, with its number.
FOR_MPI = "mpi"
# Bytes of a line: longer ones are no rank's.
LONGEST = 1 << 16
_MEMORY = "/dev/shm"
# The seconds for which late ranks get the reason why the meeting failed.
LINGER = 1.0
# The longest table name, key and value, in characters. MPICH splits longer values. A line,
# including the text before the value, must not exceed the 1024 that MPICH reads.
MAXES = "kvsname_max=256 keylen_max=64 vallen_max=768"


def mapping(hosts: Sequence[str]) -> str:
    """Which ranks share a machine, in MPICH's format: blocks of (first machine, number of machines,
    ranks on each).

    >>> from plugrad_distributed.launching.pmi import mapping
    >>> mapping(["a", "a", "b", "b", "c"])
    '(vector,(0,2,2),(2,1,1))'
    """
    numbers = {host: number for number, host in enumerate(dict.fromkeys(hosts))}
    blocks: list[tuple[int, int, int]] = []
    for host, ranks in itertools.groupby(hosts):
        number, count = numbers[host], len(list(ranks))
        if blocks and blocks[-1][2] == count and sum(blocks[-1][:2]) == number:
            first, machines, _ = blocks.pop()
            blocks.append((first, machines + 1, count))
        else:
            blocks.append((number, 1, count))
    return "(vector," + ",".join("({},{},{})".format(*block) for block in blocks) + ")"


def forget_memory(kvs: str) -> None:
    """Remove the names of the memory that the ranks of a program share on this machine, once MPI
    will not start or all have ended. After MPI's start the ranks remove them; a rank that is killed
    before leaves them.

    MPICH 5 names memory after the hash FNV-1a of the table's name, with 32 bits. So no other
    program loses its names, unless it has the same hash and just starts. In a release with other
    names, none is removed.

    Args:
        kvs: the name of the table, which differs for each program.
    """
    number = 2166136261
    for byte in kvs.encode():
        number = (number ^ byte) * 16777619 & 0xFFFFFFFF
    for kind in ("shm", "vci"):
        # The last number is the machine's.
        for path in glob.glob(f"{_MEMORY}/mpich_{kind}_{number:x}_*"):
            with contextlib.suppress(OSError):
                os.unlink(path)


class Client:
    """A connection.

    Attributes:
        rank: the rank's number, -1 until it has sent it.
        for_mpi: whether MPICH has it.
        waits: whether it waits for the others in MPICH's barrier.
    """

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.rank = -1
        self.for_mpi = False
        self.waits = False
        self._begun = b""

    def lines(self) -> list[str] | None:
        """The received lines; None at the end of the connection."""
        try:
            data = self.connection.recv(LONGEST)
        except OSError:
            return None
        *found, self._begun = (self._begun + data).split(b"\n")
        if not data or len(self._begun) > LONGEST:
            return None
        return [line.decode(errors="replace") for line in found]

    def say(self, line: str) -> None:
        """Send a line; errors of a closed connection are ignored."""
        with contextlib.suppress(OSError):
            self.connection.sendall(line.encode() + b"\n")


class Server:
    """Serves the ranks of one program until they have closed their connections.

    Args:
        listener: the socket that they connect to.
        name: distinguishes this program from others.
        size: how many ranks there are.
        limit: seconds within which all ranks must arrive.
    """

    def __init__(self, listener: socket.socket, name: str, size: int, limit: float) -> None:
        self._listener = listener
        self._name = name
        self._size = size
        self._limit = limit
        self._end = time.monotonic() + limit
        # The connections of the ranks that have come and not yet started MPI, and of MPICH.
        self._coming: dict[int, Client] = {}
        self._clients: dict[int, Client] = {}
        self._hosts: dict[int, str] = {}
        self._table: dict[str, str] = {}
        # MPICH names shared memory after it, so it must be unique to this program.
        self._kvs = f"plugrad_{secrets.token_hex(16)}"
        self._met = False
        self._refused = ""
        self._over = False
        self._selector = selectors.DefaultSelector()
        self._selector.register(listener, selectors.EVENT_READ)
        self._answers: dict[str, Callable[[Client, dict[str, str]], str]] = {
            "init": self._init,
            "get_maxes": lambda client, given: f"cmd=maxes rc=0 {MAXES}",
            "get_appnum": lambda client, given: "cmd=appnum rc=0 appnum=0",
            "get_my_kvsname": lambda client, given: f"cmd=my_kvsname rc=0 kvsname={self._kvs}",
            "get_universe_size": lambda client, given: f"cmd=universe_size rc=0 size={size}",
            "put": self._put,
            "get": self._get,
            "barrier_in": self._barrier,
            "finalize": lambda client, given: "cmd=finalize_ack rc=0",
            "abort": self._abort,
        }

    def run(self) -> None:
        """Serve, until all ranks have ended."""
        try:
            self._serve()
        finally:
            forget_memory(self._kvs)

    def _serve(self) -> None:
        while not self._over:
            left = None if self._met else max(self._end - time.monotonic(), 0.0)
            for key, _ in self._selector.select(left):
                if key.data is None:
                    self._accept()
                else:
                    self._read(key.data)
            if not self._met and time.monotonic() >= self._end:
                self._over = bool(self._refused)
                self._refuse(_missing(self._coming.keys() & self._clients, self._size, self._limit))

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            connection, _ = self._listener.accept()
            # A suspended rank must not block the server.
            connection.settimeout(5.0)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            client = Client(connection)
            self._selector.register(connection, selectors.EVENT_READ, client)
            client.say(f"{GREETING} {self._name} {self._size}")

    def _read(self, client: Client) -> None:
        lines = client.lines()
        if lines is None:
            self._lose(client)
            return
        for line in lines:
            if client.rank < 0:
                self._introduce(client, line)
            elif self._met and client.for_mpi:
                self._answer(client, line)
            elif self._met and line == "started":
                del self._coming[client.rank]
                self._close(client)
                return

    def _close(self, client: Client) -> None:
        if client.connection.fileno() < 0:
            return
        self._selector.unregister(client.connection)
        client.connection.close()
        if self._met and not self._clients and not self._coming:
            self._over = True

    def _lose(self, client: Client) -> None:
        """A connection has ended."""
        of_its_kind = self._clients if client.for_mpi else self._coming
        is_known = of_its_kind.get(client.rank) is client
        if is_known:
            del of_its_kind[client.rank]
        self._close(client)
        if not is_known or self._refused:
            return
        if not client.for_mpi:
            self._tell(client.rank)
        elif client.rank not in self._coming:
            self._end_waiting()

    def _tell(self, rank: int) -> None:
        """A rank has ended before it had started MPI."""
        if not self._met:
            self._refuse(f"rank {rank} ended before all ranks had come")
            return
        for other in self._coming.values():
            other.say(f"lost {rank}")

    def _end_waiting(self) -> None:
        """MPICH waits in its barrier without a limit. So it ends with an error instead, unless the
        rank still listens: then the rank gets the numbers of the ended ones."""
        for other in list(self._clients.values()):
            if other.waits and other.rank not in self._coming:
                self._lose(other)

    # The ranks meet

    def _introduce(self, client: Client, line: str) -> None:
        rank, size, host = [*line.split(" ", 2), "", ""][:3]
        if self._met:
            self._close(client)
        elif rank == FOR_MPI:
            self._give(client, size)
        elif not rank.isdecimal() or not size.isdecimal() or not host:
            client.say("no this is no rank of the program")
        elif self._refused:
            client.say(f"no {self._refused}")
        elif int(size) != self._size:
            self._refuse(f"world_size is {self._size} on rank 0, but {size} on rank {rank}", client)
        elif int(rank) >= self._size:
            self._refuse(f"rank {rank} does not exist: world_size is {self._size}", client)
        elif int(rank) in self._coming:
            self._refuse(f"two processes are rank {rank}", client)
        else:
            client.rank = int(rank)
            self._coming[client.rank] = client
            self._hosts[client.rank] = host
            self._begin()

    def _give(self, client: Client, rank: str) -> None:
        """A connection that a rank will give to MPICH."""
        if self._refused or not rank.isdecimal() or int(rank) >= self._size:
            self._close(client)
            return
        client.rank, client.for_mpi = int(rank), True
        self._clients[client.rank] = client
        self._begin()

    def _refuse(self, why: str, *more: Client) -> None:
        if not self._refused:
            self._refused = why
            self._end = time.monotonic() + LINGER
            for client in (*self._coming.values(), *more):
                client.say(f"no {why}")

    def _begin(self) -> None:
        """MPI may start when both connections of all ranks exist."""
        if min(len(self._coming), len(self._clients)) < self._size:
            return
        self._met = True
        self._selector.unregister(self._listener)
        self._listener.close()
        hosts = [self._hosts[rank] for rank in range(self._size)]
        self._table["PMI_process_mapping"] = mapping(hosts)
        for client in self._coming.values():
            client.say(f"go {self._kvs}")

    # MPICH's requests

    def _answer(self, client: Client, line: str) -> None:
        given = dict(word.partition("=")[::2] for word in line.split())
        command = given.get("cmd", "")
        known = self._answers.get(command)
        if known is None:
            client.say(f"cmd={command}_result rc=-1 msg=plugrad_cannot_do_this")
            return
        answer = known(client, given)
        if answer:
            client.say(answer)

    def _init(self, client: Client, given: dict[str, str]) -> str:
        if given.get("pmi_version") != "1":
            return "cmd=response_to_init rc=-1 pmi_version=1 pmi_subversion=1"
        return "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1"

    def _put(self, client: Client, given: dict[str, str]) -> str:
        self._table[given.get("key", "")] = given.get("value", "")
        return "cmd=put_result rc=0 msg=success"

    def _get(self, client: Client, given: dict[str, str]) -> str:
        value = self._table.get(given.get("key", ""))
        if value is None:
            return "cmd=get_result rc=-1 msg=key_not_found"
        return f"cmd=get_result rc=0 msg=success value={value}"

    def _barrier(self, client: Client, given: dict[str, str]) -> str:
        client.waits = True
        if len(self._clients) < self._size:
            self._end_waiting()
        elif all(other.waits for other in self._clients.values()):
            for other in self._clients.values():
                other.waits = False
                other.say("cmd=barrier_out rc=0")
        return ""

    def _abort(self, client: Client, given: dict[str, str]) -> str:
        self._lose(client)
        return ""


def _missing(come: Collection[int], size: int, limit: float) -> str:
    late = sorted(set(range(size)) - set(come))
    shown = ", ".join(map(str, late[:8])) + (f" and {len(late) - 8} more" if late[8:] else "")
    return f"rank{'s' if len(late) > 1 else ''} {shown} did not come within {limit:g} s"


def main(arguments: Sequence[str]) -> None:
    """Serve on a socket that rank 0 has opened: `pmi.py DESCRIPTOR NAME SIZE LIMIT`."""
    descriptor, name, size, limit = arguments
    # Detached, so that no process has to wait for it, and interrupts of rank 0 do not reach it.
    if os.fork():
        os._exit(0)
    os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with socket.socket(fileno=int(descriptor)) as listener:
        Server(listener, name, int(size), float(limit)).run()


if __name__ == "__main__":
    main(sys.argv[1:])
