"""Writes checkpoints: each rank writes its own file, then rank 0 writes the index.

Ranks do not communicate while they write files, so training can continue. A rank that has written
its file writes a note beside it; rank 0 waits for all notes.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import threading
import time
from collections.abc import Iterable, MutableMapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy
from numpy.typing import NDArray

from plugrad import Tensor
from plugrad_distributed.distributed.checkpoint.errors import CheckpointError
from plugrad_distributed.distributed.checkpoint.folders import FileSystemWriter, folder_of
from plugrad_distributed.distributed.checkpoint.index import (
    INDEX,
    Index,
    Stored,
    StoredPiece,
    put_in_place,
    write_at_once,
)
from plugrad_distributed.distributed.checkpoint.nesting import check_plain, entries, is_stateful
from plugrad_distributed.distributed.checkpoint.pieces import pieces_of
from plugrad_distributed.distributed.objects import broadcast_object_list
from plugrad_distributed.distributed.queries import get_group, is_initialized
from plugrad_distributed.groups.process_group import ProcessGroup

__all__ = ["async_save", "save"]

Array = NDArray[Any]
OUR_FILE = re.compile(r"rank\d+-[0-9a-f]{16}\.(safetensors|json|failed)(\.partial)?")
POLL = 0.002
# dtypes that the library supports directly.
DTYPES = frozenset(
    {
        *("bool", "uint8", "int8", "int16", "uint16", "int32", "uint32", "int64", "uint64"),
        *("float16", "bfloat16", "float32", "float64", "complex64"),
    }
)


def save(
    state_dict: MutableMapping[str, Any],
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_writer: FileSystemWriter | None = None,
    process_group: Any = None,
    no_dist: bool = False,
) -> None:
    """Write a state dict, together with the other ranks of a group.

    Each rank writes its own pieces of distributed tensors. Plain tensors must be the same on all
    ranks; the ranks divide them among themselves. Objects with a `state_dict`, such as modules and
    optimizers, are saved through it.

    Args:
        state_dict: tensors and plain values, in dicts and lists.
        checkpoint_id: a folder that all ranks can access. An existing checkpoint is replaced, but
            only when the new one is complete.
        storage_writer: the folder as an object of PyTorch's API; one of the two is enough.
        process_group: the ranks; all by default. Without `init_process_group`, this process alone.
        no_dist: whether this process writes alone, even if there are groups.

    Raises:
        TypeError: the state dict holds an object that cannot be written; the message names it.
        CheckpointError: a rank did not write its part, or pieces are missing.

    Two ranks write, and one process reads:

    >>> import os, tempfile, plugrad, plugrad.distributed as dist
    >>> from plugrad.distributed import checkpoint
    >>> folder = tempfile.TemporaryDirectory()
    >>> def program():
    ...     state = {"w": plugrad.arange(3.0), "b": plugrad.ones(1)}
    ...     checkpoint.save(state, checkpoint_id=folder.name)
    >>> results = dist.run_ranks(program, 2)
    >>> sorted(os.listdir(folder.name))
    ['index.json', 'rank0-...safetensors', 'rank1-...safetensors']
    >>> state = {"w": plugrad.zeros(3)}
    >>> checkpoint.load(state, checkpoint_id=folder.name)
    >>> state["w"]
    tensor([0., 1., 2.])
    """
    async_save(
        state_dict,
        checkpoint_id=checkpoint_id,
        storage_writer=storage_writer,
        process_group=process_group,
        no_dist=no_dist,
    ).result()


def async_save(
    state_dict: MutableMapping[str, Any],
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_writer: FileSystemWriter | None = None,
    process_group: Any = None,
    no_dist: bool = False,
) -> Future[None]:
    """`save` in the background: only a copy to host memory is made before it returns.

    Returns:
        A future. Its `result()` waits until the checkpoint is complete and raises the errors of
        `save`.

    >>> import tempfile, plugrad
    >>> from plugrad.distributed import checkpoint
    >>> folder = tempfile.TemporaryDirectory()
    >>> state = {"w": plugrad.ones(2)}
    >>> future = checkpoint.async_save(state, checkpoint_id=folder.name)
    >>> state["w"].zero_()  # training goes on
    tensor([0., 0.])
    >>> future.result()
    >>> checkpoint.load(state, checkpoint_id=folder.name)
    >>> state["w"]
    tensor([1., 1.])
    """
    folder = folder_of("save", checkpoint_id, storage_writer, "storage_writer")
    group = None if no_dist else _group(process_group)
    rank, size = (0, 1) if group is None else (group.rank(), group.size())
    token = _common(secrets.token_hex(8), group)
    index, arrays = _snapshot(state_dict, rank, size, f"rank{rank}-{token}.safetensors")
    limit = 1800.0 if group is None else group.timeout
    future: Future[None] = Future()
    future.set_running_or_notify_cancel()

    def work() -> None:
        try:
            _write(folder, token, rank, size, index, arrays, limit)
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(None)

    threading.Thread(target=work, name=f"checkpoint of rank {rank}").start()
    return future


def _group(group: Any) -> ProcessGroup | None:
    if group is None and not is_initialized():
        return None
    found = get_group(group, "save")
    if found is None:
        raise ValueError("save(): this rank is not part of the group")
    return found


def _common(token: str, group: ProcessGroup | None) -> str:
    """A token that all ranks share."""
    if group is None or group.size() == 1:
        return token
    told = [token]
    broadcast_object_list(told, group=group, group_src=0)
    return told[0]


def _snapshot(
    state_dict: MutableMapping[str, Any], rank: int, size: int, file: str
) -> tuple[Index, dict[str, Array]]:
    """The tensors that this rank writes: copies, because training continues."""
    index, arrays = Index(), {}
    loads = [0] * size
    for name, _, value in entries(_states(state_dict)):
        if not isinstance(value, Tensor):
            index.values[name] = check_plain(name, value)
            continue
        pieces = pieces_of(value)
        stored = Stored(list(pieces.shape), str(value.dtype).rpartition(".")[2])
        index.tensors[name] = stored
        writes = pieces.writes
        if writes is None:
            # All ranks compute the same assignment, so each tensor has one writer.
            writer = loads.index(min(loads))
            loads[writer] += value.numel() * value.dtype.itemsize + 1
            writes = writer == rank
        if not writes:
            continue
        for number, piece in enumerate(pieces.local):
            array = np.array(piece.tensor.detach().cpu().numpy(), order="C", copy=True)
            key = f"{name}.{number}" if len(pieces.local) > 1 else name
            raw = str(array.dtype) not in DTYPES
            arrays[key] = _bytes(array) if raw else array
            place = StoredPiece(list(piece.offset), list(array.shape), file, key, raw)
            stored.pieces.append(place)
    return index, arrays


def _states(state_dict: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """The state dict, with objects replaced by their states."""
    if not isinstance(state_dict, MutableMapping):
        return state_dict
    return {
        key: value.state_dict() if is_stateful(value) else value
        for key, value in state_dict.items()
    }


def _bytes(array: Array) -> Array:
    return array.reshape(-1).view(np.uint8)


def _write(
    folder: Path,
    token: str,
    rank: int,
    size: int,
    index: Index,
    arrays: dict[str, Array],
    limit: float,
) -> None:
    own = folder / f"rank{rank}-{token}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _write_tensors(own.with_suffix(".safetensors"), arrays)
        write_at_once(own.with_suffix(".json"), index.text().encode())
        if rank == 0:
            _finish(folder, token, size, limit)
    except BaseException as error:
        _leave_word(own, error)
        raise
    if rank > 0:
        _wait_for_index(folder, token, rank, limit)


def _write_tensors(path: Path, arrays: dict[str, Array]) -> None:
    partial = path.with_name(f"{path.name}.partial")
    try:
        safetensors.numpy.save_file(arrays, partial)
    except safetensors.SafetensorError as error:
        raise CheckpointError(f"{path.name}: the format has no room for this: {error}") from error
    put_in_place(partial, path)


def _leave_word(own: Path, error: BaseException) -> None:
    """Notify the other ranks, which wait for this one."""
    with contextlib.suppress(OSError):
        write_at_once(own.with_suffix(".failed"), f"{type(error).__name__}: {error}".encode())


def _check_others(folder: Path, token: str, ranks: Iterable[int]) -> None:
    for rank in ranks:
        word = folder / f"rank{rank}-{token}.failed"
        if word.exists():
            raise CheckpointError(
                f"rank {rank} could not write its part: {word.read_text(encoding='utf-8')}; the "
                "checkpoint that was there is still whole"
            )


def _finish(folder: Path, token: str, size: int, limit: float) -> None:
    """Merge the notes of all ranks into the index, and remove the notes, which signals to the other
    ranks that the checkpoint is complete."""
    whole = Index()
    end = time.monotonic() + limit
    notes = [folder / f"rank{rank}-{token}.json" for rank in range(size)]
    for rank, note in enumerate(notes):
        while not note.exists():
            _check_others(folder, token, range(size))
            if time.monotonic() > end:
                raise CheckpointError(
                    f"rank {rank} did not write its part to {folder} within {limit:g} s; the "
                    "checkpoint that was there is still whole"
                )
            time.sleep(POLL)
        whole.merge(Index.from_text(note.read_text(encoding="utf-8"), note))
    whole.check_whole()
    write_at_once(folder / INDEX, whole.text().encode())
    used = {piece.file for stored in whole.tensors.values() for piece in stored.pieces}
    for path in folder.iterdir():
        if OUR_FILE.fullmatch(path.name) and path.name not in used:
            path.unlink(missing_ok=True)


def _wait_for_index(folder: Path, token: str, rank: int, limit: float) -> None:
    """Wait until rank 0 has written the index and removed this rank's note."""
    end = time.monotonic() + limit
    while (folder / f"rank{rank}-{token}.json").exists():
        _check_others(folder, token, (0,))
        if time.monotonic() > end:
            raise CheckpointError(
                f"rank 0 did not finish the checkpoint in {folder} in {limit:g} s"
            )
        time.sleep(POLL)
