"""Runs one rank's program as a child. `plugrad launch` has mpiexec start this once for each rank.

mpiexec ends all processes as soon as one of them fails. So each rank is the child of a supervisor,
which reports to the launcher how the child ended and stays until the launcher reports that all have
ended. This gives the other ranks time to print their errors.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from typing import IO, Any

from plugrad_distributed.carriers.placement import local_place, place
from plugrad_distributed.launching.connections import keep_alive
from plugrad_distributed.launching.pmi import forget_memory
from plugrad_distributed.launching.relay import Relay

__all__ = ["ADDRESS", "LAUNCHED", "PATIENCE", "PREFIX", "main"]

# The launcher's "host port token", and whether lines of output begin with the rank.
ADDRESS = "PLUGRAD_LAUNCHER"
PREFIX = "PLUGRAD_LAUNCH_PREFIX"
# Shows programs that `plugrad launch` started them.
LAUNCHED = "PLUGRAD_LAUNCHED"
# Seconds between asking a program to end and killing it.
PATIENCE = 3.0
_PR_SET_PDEATHSIG = 1


class _Launcher:
    """The connection to `plugrad launch`; without one, nothing is reported."""

    def __init__(self, address: str, rank: int) -> None:
        self._link: socket.socket | None = None
        self.over = threading.Event()
        host, _, more = address.partition(" ")
        port, _, token = more.partition(" ")
        if port.isdecimal():
            with contextlib.suppress(OSError):
                self._link = socket.create_connection((host, int(port)), 10.0)
                self._link.settimeout(None)
                keep_alive(self._link)
                self.say(token=token, rank=rank, host=socket.gethostname())
        if self._link is None:
            self.over.set()

    def say(self, **message: Any) -> None:
        if self._link is not None:
            with contextlib.suppress(OSError):
                self._link.sendall(json.dumps(message).encode() + b"\n")

    def obey(self, child: subprocess.Popen[bytes]) -> None:
        """Forward signals to the child, until the launcher reports that all have ended, or has
        ended itself."""
        if self._link is None:
            return
        with contextlib.suppress(OSError, ValueError), self._link.makefile("rb") as lines:
            for line in lines:
                message = json.loads(line)
                if message.get("over"):
                    self.over.set()
                    return
                if child.poll() is None:
                    child.send_signal(message["signal"])
        self.over.set()
        if child.poll() is None:
            _end(child)


def _end(child: subprocess.Popen[bytes]) -> None:
    child.terminate()
    try:
        child.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        child.kill()


def placed(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables with a program's rank and size, under torchrun's names."""
    rank, size = place(environment)
    local_rank, local_size = local_place(environment)
    found = {
        "RANK": rank,
        "WORLD_SIZE": size,
        "LOCAL_RANK": local_rank,
        "LOCAL_WORLD_SIZE": local_size,
    }
    return {name: str(value) for name, value in found.items() if value is not None}


def _die_with_parent() -> None:
    """In the child: kill the program if the supervisor is killed (Linux)."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _forward(source: IO[bytes], to: IO[bytes], prefix: bytes) -> None:
    for line in source:
        to.write(prefix + line if line.endswith(b"\n") else prefix + line + b"\n")
        to.flush()


def main() -> int:
    """Run the program that the arguments name."""
    environment = dict(os.environ)
    place_of_rank = placed(environment)
    address = environment.pop(ADDRESS, "")
    prefix = environment.pop(PREFIX, "")
    environment.update(place_of_rank)
    environment[LAUNCHED] = "1"
    rank = int(place_of_rank.get("RANK", "0"))
    launcher = _Launcher(address, rank)
    relay = Relay(environment)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    pipe = subprocess.PIPE if prefix else None
    # MPI's own connection is an open file that the program must inherit.
    child = subprocess.Popen(
        sys.argv[1:],
        env=environment,
        close_fds=False,
        stdout=pipe,
        stderr=pipe,
        preexec_fn=_prepare,
        process_group=0,
    )
    relay.begin()
    # Popen sends nothing to a child that has ended.
    signal.signal(signal.SIGTERM, lambda *_: child.terminate())
    threads = []
    if child.stdout is not None and child.stderr is not None:
        mark = f"[{rank}] ".encode()
        pairs = ((child.stdout, sys.stdout.buffer), (child.stderr, sys.stderr.buffer))
        threads = [threading.Thread(target=_forward, args=(*pair, mark)) for pair in pairs]
    for thread in threads:
        thread.start()
    threading.Thread(target=launcher.obey, args=(child,), daemon=True).start()
    code = child.wait()
    if code != 0:
        # Processes that the program started and did not end, such as data loading workers.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
    for thread in threads:
        thread.join()
    launcher.say(code=code)
    alone = launcher.over.is_set()
    launcher.over.wait()
    if relay.name:
        # A rank that was killed while MPI started has left them.
        forget_memory(relay.name)
    # The launcher already has the exit code; mpiexec would print a message about it.
    return 0 if not alone else code if code >= 0 else 128 - code


def _prepare() -> None:
    _die_with_parent()
    signal.signal(signal.SIGINT, signal.default_int_handler)


if __name__ == "__main__":
    sys.exit(main())
