"""`plugrad launch`: how it starts programs, what these find, and how they end. The programs are
small ones that need no plugrad."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from plugrad import distributed as dist
from plugrad_distributed.distributed.starting import STARTED_BY_MPI
from plugrad_distributed.launching import run as run_module
from plugrad_distributed.launching import starter as starter_module
from plugrad_distributed.launching.relay import Relay
from plugrad_distributed.launching.starter import Starter, count_of_slurm, find_starter
from plugrad_distributed.launching.supervisor import ADDRESS
from tests.distributed.under_mpi import RESULTS, Program, needs_mpi, run, start

NAMES = ["RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "OMP_NUM_THREADS"]

# The beginning of the programs: `report` as in under_mpi, without imports of tests.
REPORT = f"""
import json, os, pathlib, signal, sys, time
rank = os.environ["RANK"]
def report(value):
    path = pathlib.Path(os.environ[{RESULTS!r}]) / f"rank-{{rank}}.json"
    begun = path.with_suffix(".begun")
    begun.write_text(json.dumps({{"pid": os.getpid(), "value": value}}))
    begun.rename(path)
"""


def program(tmp_path: Path, text: str, name: str = "program.py") -> Path:
    path = tmp_path / name
    path.write_text(REPORT + text)
    return path


@needs_mpi
def test_programs_find_their_place_and_their_arguments(tmp_path: Path) -> None:
    path = program(
        tmp_path,
        f"report([sys.argv[1:], [os.environ[n] for n in {NAMES}], __name__])\n"
        "print('to out'); print('to err', file=sys.stderr)",
    )
    outcome = run(path, 2, "--lr", "-n", "3", folder=tmp_path / "a", launch=["--prefix"])
    for rank in range(2):
        found = outcome.value(rank)
        assert found == [["--lr", "-n", "3"], [str(rank), "2", str(rank), "2", "1"], "__main__"]
        assert f"[{rank}] to out\n" in outcome.out
        assert f"[{rank}] to err\n" in outcome.err
    assert "PLUGRAD_NUM_THREADS=1" in outcome.err
    assert outcome.code == 0


@needs_mpi
def test_a_module_is_run_and_the_first_code_counts(tmp_path: Path) -> None:
    program(
        tmp_path,
        "report(__name__)\nif rank == '1': sys.exit(5)\ntime.sleep(1.5)\nsys.exit(6)",
        "a_module.py",
    )
    variables = {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    outcome = run(Path("a_module"), 2, folder=tmp_path / "a", launch=["-m"], variables=variables)
    assert outcome.value(0) == "__main__"
    assert outcome.code == 5
    assert "rank 1 ended with exit code 5; the others have 30 s to end" in outcome.err


@needs_mpi
def test_what_goes_on_after_a_failure_is_ended_by_force(tmp_path: Path) -> None:
    path = program(
        tmp_path,
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nreport(0)\n"
        # Not before the other one ignores signals.
        f"other = os.path.join(os.environ[{RESULTS!r}], 'rank-1.json')\n"
        "while not os.path.exists(other): time.sleep(0.01)\n"
        "if rank == '0': os.kill(os.getpid(), signal.SIGSEGV)\ntime.sleep(600)",
    )
    begun = start(path, 2, folder=tmp_path / "a", launch=["--grace", "0"])
    begun.wait_for_reports(30)
    pids = begun.pids()
    outcome = begun.end(20)
    assert outcome.code == 128 + signal.SIGSEGV
    assert "rank 0 ended with signal SIGSEGV" in outcome.err
    check_gone(pids)


def check_gone(pids: list[int]) -> None:
    """No process may be left; init may need a moment to bury it."""
    end = time.monotonic() + 10
    left = pids
    while left and time.monotonic() < end:
        left = [pid for pid in left if _is_alive(pid)]
        time.sleep(0.05)
    assert not left


def _is_alive(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def sleeping(tmp_path: Path) -> Program:
    path = program(
        tmp_path,
        "report(0)\n"
        "try:\n    time.sleep(600)\nexcept KeyboardInterrupt:\n    report('interrupted')\n",
    )
    begun = start(path, 2, folder=tmp_path / "a", launch=[])
    begun.wait_for_reports(30)
    return begun


@needs_mpi
def test_an_interrupt_reaches_all_ranks(tmp_path: Path) -> None:
    begun = sleeping(tmp_path)
    pids = begun.pids()
    begun.process.send_signal(signal.SIGINT)
    outcome = begun.end(20)
    assert outcome.values == ["interrupted", "interrupted"]
    assert outcome.code == 130
    check_gone(pids)


@needs_mpi
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_ranks_end_with_a_launcher_that_is_killed(tmp_path: Path) -> None:
    begun = sleeping(tmp_path)
    pids = begun.pids()
    begun.process.kill()
    begun.end(20)
    check_gone(pids)


@needs_mpi
@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--mpiexec", "no-such-mpiexec"], "--mpiexec: no program 'no-such-mpiexec' found"),
        (["-m", "-n"], "Invalid value for '--processes'"),
    ],
)
def test_wrong_options_are_named(tmp_path: Path, options: list[str], told: str) -> None:
    path = program(tmp_path, "")
    outcome = run(path, 2, folder=tmp_path / "a", launch=options)
    assert told in outcome.err
    assert outcome.code == 2


def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    outcome = run(tmp_path / "absent.py", 2, folder=tmp_path / "a", launch=[])
    assert "no program" in outcome.err
    assert outcome.code == 2


@needs_mpi
def test_mpi_that_was_started_before_is_explained(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(
        "import os\nos.environ.update(RANK='0', WORLD_SIZE='2')\nfrom mpi4py import MPI\n"
        "from plugrad import distributed as dist\ndist.init_process_group()\n"
    )
    paths = os.pathsep.join(filter(None, [str(Path.cwd()), *sys.path]))
    found = subprocess.run(
        [sys.executable, str(path)],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert re.search(r"world_size is 2, but MPI \(.*\) is on its own in this process", found.stderr)
    assert "plugrad launch -n 2" in found.stderr
    assert found.returncode == 1


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("HYDRA build details:", "hydra"),
        ("mpirun (Open MPI) 5.0.3", "openmpi"),
        ("something else", "unknown"),
    ],
)
def test_the_kind_of_mpiexec_is_what_it_says(tmp_path: Path, said: str, kind: str) -> None:
    path = tmp_path / "mpiexec"
    path.write_text(f"#!/bin/sh\necho '{said}'\n")
    path.chmod(0o755)
    assert find_starter(str(path)) == Starter(str(path), kind)


@pytest.mark.parametrize(
    ("kind", "command"),
    [
        ("hydra", ["-n", "4", "-hosts", "a,b", "python"]),
        (
            "openmpi",
            ["-n", "4", "--oversubscribe", "-x", "PYTHONPATH", "--host", "a,b", "python"],
        ),
        ("srun", ["-n", "4", "--mpi=pmi2", "--nodelist", "a,b", "python"]),
    ],
)
def test_machines_are_told_to_each_kind(
    monkeypatch: pytest.MonkeyPatch, kind: str, command: list[str]
) -> None:
    monkeypatch.delenv("SLURM_MPI_TYPE", raising=False)
    monkeypatch.setattr(starter_module, "_library", lambda: "MPICH")
    starter = Starter("start", kind)
    found = starter.command(4, ["python"], hosts=["a", "b"], variables=["PYTHONPATH"])
    assert found == ["start", *command]


@pytest.mark.parametrize(
    ("library", "given", "option"),
    [
        ("MPICH", None, ["--mpi=pmi2"]),
        ("Open MPI", None, ["--mpi=pmix"]),
        ("Open MPI", "pmix_v4", []),
    ],
)
def test_srun_connects_processes_as_their_mpi_expects(
    monkeypatch: pytest.MonkeyPatch, library: str, given: str | None, option: list[str]
) -> None:
    monkeypatch.delenv("SLURM_MPI_TYPE", raising=False)
    if given is not None:
        # srun reads it itself.
        monkeypatch.setenv("SLURM_MPI_TYPE", given)
    monkeypatch.setattr(starter_module, "_library", lambda: library)
    found = Starter("srun", "srun").command(2, ["python"])
    assert found == ["srun", "-n", "2", *option, "python"]


def test_processes_of_srun_that_cannot_meet_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "WORLD_SIZE", *STARTED_BY_MPI):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SLURM_STEP_NUM_TASKS", "4")
    with pytest.raises(ValueError, match=r"srun started 4 processes.*`srun --mpi=pmi2`"):
        dist.init_process_group()
    dist.init_process_group("alone")
    dist.destroy_process_group()


def test_a_hostfile_that_cannot_be_told_is_refused() -> None:
    with pytest.raises(ValueError, match=r"--hostfile: start \(srun\) has no such option"):
        Starter("start", "srun").command(2, ["python"], hostfile=Path("hosts"))


@pytest.mark.parametrize(
    ("environment", "count"),
    [({}, None), ({"SLURM_NTASKS": "8"}, None), ({"SLURM_JOB_ID": "1", "SLURM_NTASKS": "8"}, 8)],
)
def test_jobs_of_slurm_say_how_many(environment: dict[str, Any], count: int | None) -> None:
    assert count_of_slurm(environment) == count


@needs_mpi
def test_no_names_of_memory_stay_when_a_rank_is_killed_while_mpi_starts(tmp_path: Path) -> None:
    path = Path(__file__).with_name("starting_program.py")
    outcome = run(path, 2, folder=tmp_path, launch=["--grace", "0"])
    assert outcome.code == 128 + signal.SIGKILL
    names = outcome.value(0)
    assert names
    assert not [name for name in names if Path(name).exists()]


def test_the_relay_passes_on_everything_and_learns_the_name() -> None:
    mpiexec, given = socket.socketpair()
    environment = {"PMI_FD": str(given.detach())}
    relay = Relay(environment)
    rank = socket.socket(fileno=os.dup(int(environment["PMI_FD"])))
    relay.begin()
    with mpiexec, rank:
        rank.sendall(b"cmd=get_my_kvsname\n")
        assert mpiexec.recv(100) == b"cmd=get_my_kvsname\n"
        received = b""
        # In pieces, as it may come.
        for piece in (b"cmd=maxes rc=0 kvsname_max=9\ncmd=my_kvs", b"name rc=0 kvsname=kvs_1\n"):
            mpiexec.sendall(piece)
            received += rank.recv(100)
        assert received == b"cmd=maxes rc=0 kvsname_max=9\ncmd=my_kvsname rc=0 kvsname=kvs_1\n"
        assert relay.name == "kvs_1"
        # mpiexec is gone: the rank sees it.
        mpiexec.shutdown(socket.SHUT_RDWR)
        assert rank.recv(100) == b""


@pytest.mark.parametrize("given", [{}, {"PMI_FD": "x"}, {"PMI_FD": "1000000"}])
def test_without_a_connection_there_is_no_relay(given: dict[str, str]) -> None:
    environment = dict(given)
    Relay(environment).begin()
    assert environment == given


def test_a_rank_whose_machine_cannot_be_reached_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_module, "PATIENCE", 0.1)
    # Rank 0 reports its end; rank 1 says that it is there, and does not react to signals.
    path = tmp_path / "starter.py"
    path.write_text(
        f"import json, os, socket, time\nhost, port, token = os.environ[{ADDRESS!r}].split()\n"
        "links = [socket.create_connection((host, int(port))) for _ in range(2)]\n"
        "for rank, link in enumerate(links):\n"
        "    link.sendall(json.dumps({'token': token, 'rank': rank}).encode() + b'\\n')\n"
        "links[0].sendall(b'{\"code\": 3}\\n')\ntime.sleep(600)\n"
    )
    told: list[str] = []
    ranks = run_module.Ranks(2, 0.1, told.append)
    monkeypatch.setattr(run_module, "ENDING", 0.1)
    assert ranks.run([sys.executable, str(path)], os.environ) == 3
    assert told == [
        "rank 0 ended with exit code 3; the others have 0.1 s to end",
        "rank 1 continues: SIGTERM",
        "rank 1 continues: SIGKILL",
        "rank 1 cannot be reached: look for processes that are left there",
    ]
