"""State dicts in several files with an index, as model hubs have them."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import Any

import pytest

import plugrad
from plugrad import nn


def write_shards(folder: Path, format_: Any, suffix: str) -> tuple[nn.Module, Path]:
    plugrad.manual_seed(3)
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    state = model.state_dict()
    places = {}
    for number in (1, 2):
        name = f"model-{number:05}-of-00002.{suffix}"
        part = {key: value for key, value in state.items() if key[0] == str(number - 1)}
        plugrad.save(part, folder / name, format=format_)
        places.update(dict.fromkeys(part, name))
    index = folder / f"model.{suffix}.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": places}))
    return model, index


@pytest.mark.parametrize(("format_", "suffix"), [("safetensors", "safetensors"), ("pt", "bin")])
def test_an_index_stands_for_its_shards(tmp_path: Path, format_: str, suffix: str) -> None:
    model, index = write_shards(tmp_path, format_, suffix)
    state = plugrad.load(str(index), map_location="cpu")
    assert list(state) == list(model.state_dict())
    again = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    again.load_state_dict(state)
    x = plugrad.rand(4, 2)
    assert again(x).tolist() == model(x).tolist()


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_links_to_another_folder_are_followed(tmp_path: Path) -> None:
    # As a hub's cache has it: files by their hashes, and a folder of links with names.
    blobs, snapshot = tmp_path / "blobs", tmp_path / "snapshot"
    blobs.mkdir()
    snapshot.mkdir()
    _, index = write_shards(blobs, "safetensors", "safetensors")
    for number, path in enumerate(sorted(blobs.iterdir())):
        path.rename(blobs / str(number))
        (snapshot / path.name).symlink_to(blobs / str(number))
    assert len(plugrad.load(snapshot / index.name)) == 4


@pytest.mark.parametrize(
    "shard",
    ["../x.safetensors", "/etc/x", "a/b", "..", ".", "", "a\\b", "C:\\x\\y", "a\0b"],
)
def test_shards_elsewhere_are_refused(tmp_path: Path, shard: str) -> None:
    index = tmp_path / "folder" / "model.safetensors.index.json"
    index.parent.mkdir()
    plugrad.save({"w": plugrad.ones(1)}, tmp_path / "x.safetensors")
    index.write_text(json.dumps({"weight_map": {"w": shard}}))
    with pytest.raises(ValueError, match="is not the name of a file beside the index"):
        plugrad.load(index)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "no valid JSON"),
        ("{}", "has no weight_map"),
        ('{"weight_map": []}', "has no weight_map"),
        ('{"weight_map": {"w": 3}}', "has no weight_map"),
        ('{"a":' * 100_000, "no valid JSON"),
    ],
)
def test_broken_indexes_are_refused(tmp_path: Path, text: str, message: str) -> None:
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(text)
    with pytest.raises(ValueError, match=message):
        plugrad.load(index)


def test_what_a_shard_lacks_is_named(tmp_path: Path) -> None:
    index = tmp_path / "pytorch_model.bin.index.json"
    plugrad.save({"w": plugrad.ones(1)}, tmp_path / "a.bin", format="pt")
    plugrad.save([1], tmp_path / "b.bin", format="pt")
    for places, message in [
        ({"w": "a.bin", "x": "a.bin"}, "there is no 'x' in shard 'a.bin'"),
        ({"w": "b.bin"}, "shard 'b.bin' holds no state dict"),
    ]:
        index.write_text(json.dumps({"weight_map": places}))
        with pytest.raises(ValueError, match=message):
            plugrad.load(index)
    index.write_text(json.dumps({"weight_map": {"w": "c.bin"}}))
    with pytest.raises(FileNotFoundError):
        plugrad.load(index)


def test_an_index_without_a_path_is_refused() -> None:
    with pytest.raises(ValueError, match="f must be the path of an index"):
        plugrad.load(io.BytesIO(b'{"weight_map": {}}'))
