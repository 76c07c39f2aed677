"""Processes that MPI did not start become ranks of one program: under torchrun, by multiprocessing;
and the messages if they do not meet. MPI's own results are in `test_checks`."""

from __future__ import annotations

import importlib.util
import json
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from plugrad import distributed as dist
from plugrad_distributed.errors import DistError, DistNetworkError, DistTimeoutError
from plugrad_distributed.launching import pmi
from plugrad_distributed.launching.meeting import met
from plugrad_distributed.launching.pmi import mapping
from plugrad_distributed.launching.rendezvous import PORTS_AFTER, Rendezvous, rendezvous_of
from plugrad_distributed.launching.watching import started, watched
from tests.distributed.mpi.checks import CHECKS, results
from tests.distributed.under_mpi import needs_mpi, run

HERE = Path(__file__).parent
STRANGERS = HERE / "strangers_program.py"
FAILING = HERE / "failing_program.py"
# torchrun and each rank import Python's packages anew: on a busy machine that takes long.
LIMIT = 240.0
needs_torchrun = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="torch is not installed"
)


@pytest.fixture
def port() -> int:
    """A port that is free."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        found: int = server.getsockname()[1]
    return found


@pytest.fixture
def busy() -> Iterator[int]:
    """A port at which another program listens, and says nothing."""
    with socket.create_server(("", 0)) as server:
        yield server.getsockname()[1]


# Where they meet


@needs_mpi
@pytest.mark.usefixtures("mpich")
@pytest.mark.parametrize("way", ["environment", "tcp", "file"])
def test_processes_of_multiprocessing_meet(tmp_path: Path, port: int, way: str) -> None:
    count = 3 if way == "tcp" else 2
    place = {
        "environment": f"127.0.0.1:{port}",
        "file": f"file://{tmp_path / 'meeting place'}",
    }.get(way, f"tcp://localhost:{port}")
    outcome = run(
        *(STRANGERS, count, way, place, str(count)),
        folder=tmp_path / "ranks",
        by_itself=True,
        limit=LIMIT,
    )
    assert outcome.code == 0, outcome.err
    for rank in range(count):
        own = [rank, count, [sum(range(1, count + 1))] * 3]
        assert outcome.value(rank) == [own, own, [], str(rank), str(count)]
    assert not (tmp_path / "meeting place").exists()


@needs_mpi
@pytest.mark.usefixtures("mpich")
@needs_torchrun
def test_every_collective_under_torchrun(tmp_path: Path) -> None:
    # Its own server has the port that it names, so the ranks meet at another one.
    options = ["--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0"]
    outcome = run(HERE / "checks.py", 2, folder=tmp_path, torchrun=options, limit=LIMIT)
    assert outcome.code == 0, outcome.err
    wanted = json.loads(json.dumps(dist.run_ranks(results, 2)))
    for rank, expected in enumerate(wanted):
        for name in CHECKS:
            assert outcome.value(rank)[name] == expected[name]


@needs_mpi
@pytest.mark.usefixtures("mpich")
@needs_torchrun
@pytest.mark.parametrize(
    ("how", "told"),
    [
        ("kill", "rank 1 ended without an exception"),
        pytest.param(
            *("raise", "rank 1 ended with ValueError: the data are rotten"), marks=pytest.mark.long
        ),
    ],
)
def test_others_under_torchrun_raise_and_name_the_rank(
    tmp_path: Path, port: int, how: str, told: str
) -> None:
    options = ["--master-port", str(port), "--monitor-interval", "5"]
    outcome = run(FAILING, 3, how, "1", "120", folder=tmp_path, torchrun=options, limit=LIMIT)
    assert outcome.code == 1
    messages = [outcome.value(rank)[1] for rank in (0, 2)]
    assert any(told in message for message in messages)


@needs_mpi
@pytest.mark.usefixtures("mpich")
def test_a_port_of_another_program_beside_torchruns_is_passed_over(
    tmp_path: Path, busy: int
) -> None:
    variables = {"TORCHELASTIC_USE_AGENT_STORE": "True", "TORCHELASTIC_RUN_ID": "test"}
    place = f"127.0.0.1:{busy - 1}"
    outcome = run(
        *(STRANGERS, 2, "environment", place, "2"),
        folder=tmp_path,
        by_itself=True,
        limit=LIMIT,
        variables=variables,
    )
    assert outcome.code == 0, outcome.err
    assert outcome.value(1)[0] == [1, 2, [3.0, 3.0, 3.0]]


# Messages if they do not meet


def outcomes(*ranks: Callable[[], None]) -> list[Any]:
    """What each of several ranks ended with."""
    found: list[Any] = [None] * len(ranks)

    def one(position: int) -> None:
        try:
            ranks[position]()
        except DistError as error:
            found[position] = error

    threads = [threading.Thread(target=one, args=(at,)) for at in range(len(ranks))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def coming(place: Rendezvous, rank: int, size: int, limit: float = 20.0) -> Callable[[], None]:
    def come() -> None:
        with met(place, rank, size, limit):
            pytest.fail(f"rank {rank} met others")

    return come


@pytest.mark.parametrize(
    ("others", "kind", "told"),
    [
        ([(1, 4)], DistTimeoutError, "ranks 2, 3 did not come within 1.5 s"),
        ([(1, 4), (1, 4)], DistNetworkError, "two processes are rank 1"),
        ([(1, 4), (2, 5)], DistNetworkError, "world_size is 4 on rank 0, but 5 on rank 2"),
        ([(7, 4)], DistNetworkError, "rank 7 does not exist: world_size is 4"),
    ],
)
def test_ranks_that_do_not_agree_are_told(
    port: int, others: list[tuple[int, int]], kind: type[DistError], told: str
) -> None:
    place = rendezvous_of(f"tcp://127.0.0.1:{port}", {})
    ranks = [(0, 4), *others]
    found = outcomes(*(coming(place, rank, size, 1.5) for rank, size in ranks))
    for (rank, _), error in zip(ranks, found, strict=True):
        assert type(error) is kind
        assert str(error) == f"init_process_group() on rank {rank}: {told}"


def test_a_rank_that_ends_before_all_have_come_is_named(port: int) -> None:
    place = rendezvous_of(f"tcp://127.0.0.1:{port}", {})

    def ends() -> None:
        while True:
            try:
                connection = socket.create_connection(("127.0.0.1", port))
                break
            except ConnectionRefusedError:
                continue
        with connection:
            connection.sendall(b"2 3 somewhere\n")

    first, _ = outcomes(coming(place, 0, 3), ends)
    assert str(first).endswith("on rank 0: rank 2 ended before all ranks had come")


def test_a_port_that_is_taken_is_named(busy: int) -> None:
    place = rendezvous_of(f"tcp://127.0.0.1:{busy}", {})
    first, second = outcomes(coming(place, 0, 2), coming(place, 1, 2, 3.0))
    assert type(first) is DistNetworkError
    assert f"rank 0 cannot listen at 127.0.0.1:{busy}: " in str(first)
    assert "MASTER_PORT" in str(first)
    assert type(second) is DistTimeoutError
    assert str(second).endswith(
        f"rank 0 did not come to 127.0.0.1:{busy} within 3 s: another program listens at "
        f"127.0.0.1:{busy}"
    )


def test_a_rank_0_that_does_not_come_is_named(tmp_path: Path, port: int) -> None:
    path = tmp_path / "left from another run"
    path.write_text(f"{socket.gethostname()} {port}\n")
    for method in (f"tcp://127.0.0.1:{port}", f"file://{path}"):
        (error,) = outcomes(coming(rendezvous_of(method, {}), 1, 2, 0.5))
        assert type(error) is DistTimeoutError
        assert re.search(r"rank 0 did not come to .* within 0.5 s: 127.0.0.1:\d+: ", str(error))


# Messages if one ends while MPI starts


@needs_mpi
@pytest.mark.usefixtures("mpich")
@pytest.mark.parametrize("lost", [0, 1])
def test_a_rank_that_is_killed_while_mpi_starts_is_named_at_once(
    tmp_path: Path, port: int, lost: int
) -> None:
    outcome = run(
        *(STRANGERS, 3, "tcp", f"tcp://localhost:{port}", "3", str(lost)),
        folder=tmp_path,
        by_itself=True,
        limit=LIMIT,
    )
    for rank in {0, 1, 2} - {lost}:
        told, waited = outcome.value(rank)
        expected = f"init_process_group() on rank {rank}: rank {lost} ended while MPI started"
        assert told == ["DistNetworkError", expected]
        # The limit of the meeting is 120 s.
        assert waited < 60


@needs_mpi
def test_no_names_of_memory_stay_when_a_rank_is_killed_while_mpi_starts(
    tmp_path: Path, port: int
) -> None:
    program = Path(__file__).with_name("starting_program.py")
    outcome = run(program, 2, str(port), folder=tmp_path, by_itself=True, limit=LIMIT)
    names = outcome.value(0)
    assert names
    assert outcome.value(1) == "init_process_group() on rank 1: rank 0 ended while MPI started"
    # The server ends after the ranks.
    end = time.monotonic() + 10
    while any(Path(name).exists() for name in names) and time.monotonic() < end:
        time.sleep(0.05)
    assert not [name for name in names if Path(name).exists()]


def test_only_the_names_of_a_program_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # "892f507a" is what MPICH 5.0.2 made of the name below.
    names = ["mpich_shm_892f507a_0", "mpich_shm_892f507a_12", "mpich_vci_892f507a_0"]
    others = [
        "mpich_shm_892f507_0",
        "mpich_shm_1892f507a_0",
        "mpich_shm_1e73_0",
        "other_892f507a_0",
    ]
    for name in (*names, *others):
        (tmp_path / name).touch()
    monkeypatch.setattr(pmi, "_MEMORY", str(tmp_path))
    pmi.forget_memory("kvs_4389_0_541106106_vm")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(others)


def watched_start(start: Callable[[], Any], limit: float = 20.0) -> tuple[Any, socket.socket]:
    """What a watched start gives or ends with, and the server's end of the rank's connection."""
    server, connection = socket.socketpair()
    with watched(connection, 3, limit, "plugrad_test"):
        return started(start), server


def test_a_start_gives_its_result_and_the_server_learns_of_it() -> None:
    found, server = watched_start(lambda: 7)
    with server:
        assert found == 7
        assert server.recv(100) == b"started\n"


def test_a_start_that_fails_raises_its_own_error() -> None:
    with pytest.raises(ValueError, match="no such interface"):
        watched_start(lambda: raises(ValueError("no such interface")))


def raises(error: BaseException) -> None:
    raise error


def test_a_start_of_mpi_that_takes_too_long_raises() -> None:
    with pytest.raises(DistTimeoutError, match=r"rank 3: MPI did not start within 0\.2 s"):
        watched_start(threading.Event().wait, 0.2)


@pytest.mark.parametrize(
    ("word", "told"), [(b"lost 1\n", "rank 1 ended"), (b"", "the server of the meeting ended")]
)
def test_a_start_that_waits_or_fails_after_a_rank_has_ended_names_it(
    word: bytes, told: str
) -> None:
    for start in (threading.Event().wait, lambda: raises(RuntimeError("MPI failed"))):
        server, connection = socket.socketpair()
        server.sendall(word)
        server.close()
        with pytest.raises(DistNetworkError, match=f"rank 3: {told} while MPI started"):  # noqa: SIM117
            with watched(connection, 3, 20.0, "plugrad_test"):
                started(start)


@pytest.mark.parametrize(
    ("given", "environment", "told"),
    [
        ({"init_method": "udp://a:1"}, {}, "init_method must be 'env://', 'tcp://host:port' or"),
        ({"init_method": "tcp://a"}, {}, "init_method must name host and port"),
        ({"init_method": "tcp://a:port"}, {}, "init_method must name host and port"),
        ({"init_method": "file://a/b"}, {}, "init_method must have the whole path of a file"),
        (
            {"init_method": "tcp://a:1?rank=x", "rank": -1},
            {},
            "rank of init_method must be",
        ),
        ({}, {}, "environment variable MASTER_ADDR expected, but not set"),
        ({}, {"MASTER_ADDR": "a"}, "environment variable MASTER_PORT expected, but not set"),
        ({}, {"MASTER_ADDR": "a", "MASTER_PORT": "70000"}, "MASTER_PORT must be a port"),
        ({"rank": 2}, {}, r"rank must be in the interval \[0, 1\], got 2"),
        ({"rank": -1}, {}, "rank must be given, by the argument or as environment variable RANK"),
    ],
)
@needs_mpi
def test_wrong_arguments_are_named(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, Any], environment: dict[str, str], told: str
) -> None:
    for name in ("MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match=told):
        dist.init_process_group(
            **{"backend": "mpi", "world_size": 2, "rank": 1, "timeout": 5.0, **given}
        )


def test_ports_after_torchruns_own_stay_ports() -> None:
    environment = {
        "MASTER_ADDR": "a",
        "MASTER_PORT": "65530",
        "TORCHELASTIC_USE_AGENT_STORE": "True",
    }
    ports = rendezvous_of(None, environment).ports
    assert len(set(ports)) == PORTS_AFTER
    assert 65530 not in ports
    assert all(1024 <= port < 1 << 16 for port in ports)


def test_a_program_that_is_started_again_does_not_meet_what_is_left_of_it() -> None:
    environment = {"MASTER_ADDR": "a", "MASTER_PORT": "1", "TORCHELASTIC_RESTART_COUNT": "0"}
    before = rendezvous_of("env://", environment)
    environment["TORCHELASTIC_RESTART_COUNT"] = "1"
    assert rendezvous_of("env://", environment).name != before.name


@pytest.mark.parametrize(
    ("hosts", "found"),
    [
        (["a"] * 4, "(vector,(0,1,4))"),
        (["a", "a", "b", "b"], "(vector,(0,2,2))"),
        (["a", "b", "a", "b"], "(vector,(0,2,1),(0,2,1))"),
        (["a", "a", "b", "c", "c", "a"], "(vector,(0,1,2),(1,1,1),(2,1,2),(0,1,1))"),
    ],
)
def test_machines_are_told_as_mpich_reads_them(hosts: list[str], found: str) -> None:
    assert mapping(hosts) == found
