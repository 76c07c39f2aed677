"""State dicts in several files: an index lists the shard of each tensor."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from plugrad_nn.serialization.paths import PathOrFile, called, path_of


def load(f: PathOrFile, file: BinaryIO, load_shard: Callable[[Path], Any]) -> dict[str, Any]:
    """All tensors that an index names, in its order.

    Args:
        f: the path of the index; its shards are in the same folder.
        file: the index.
        load_shard: reads one shard.

    Raises:
        ValueError: the index is broken, names a file elsewhere, or a shard has other tensors; or
            `f` is not a path.
        FileNotFoundError: a shard is missing.
    """
    name = called(f)
    if path_of(f) is None:
        raise ValueError("load: f must be the path of an index: its shards are in the same folder")
    # Where the index is called so: it may be a link to another folder, as a hub's cache has them.
    index = Path(name)
    places = _weight_map(name, file)
    found: dict[str, Any] = {}
    for shard in dict.fromkeys(places.values()):
        tensors = load_shard(_beside(index, name, shard))
        if not isinstance(tensors, dict):
            raise ValueError(f"load: {name}: shard {shard!r} holds no state dict")
        for key, place in places.items():
            if place != shard:
                continue
            if key not in tensors:
                raise ValueError(f"load: {name}: there is no {key!r} in shard {shard!r}")
            found[key] = tensors[key]
    return {key: found[key] for key in places}


def _weight_map(name: str, file: BinaryIO) -> dict[str, str]:
    try:
        index = json.loads(file.read())
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"load: {name} is no safetensors file, no file of PyTorch's and no valid JSON: {error}"
        ) from error
    places = index.get("weight_map") if isinstance(index, dict) else None
    if not isinstance(places, dict) or not all(isinstance(place, str) for place in places.values()):
        raise ValueError(f"load: {name} has no weight_map, from names to files, as an index has")
    return places


def _beside(index: Path, name: str, shard: str) -> Path:
    """The path of a shard, which must be in the index's folder."""
    parts = shard.replace("\\", "/").split("/")
    if len(parts) != 1 or shard in ("", ".", "..") or "\0" in shard or os.path.isabs(shard):
        raise ValueError(
            f"load: {name}: shard {shard!r} is not the name of a file beside the index"
        )
    return index.with_name(shard)
