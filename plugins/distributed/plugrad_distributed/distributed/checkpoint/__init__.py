"""`plugrad.distributed.checkpoint`: state dicts that several ranks write together, and any number
of ranks reads.

A checkpoint is a folder of safetensors files, one for each rank, and an index, `index.json`, which
lists the pieces of each tensor. The index is replaced last, in one step: whenever a process dies,
the folder holds the last complete checkpoint.

>>> import tempfile, plugrad
>>> from plugrad.distributed import checkpoint
>>> folder = tempfile.TemporaryDirectory()
>>> checkpoint.save({"w": plugrad.arange(3.0), "epoch": 7}, checkpoint_id=folder.name)
>>> state = {"w": plugrad.zeros(3), "epoch": 0}
>>> checkpoint.load(state, checkpoint_id=folder.name)
>>> state
{'w': tensor([0., 1., 2.]), 'epoch': 7}
"""

from __future__ import annotations

from plugrad_distributed.distributed.checkpoint.errors import CheckpointError
from plugrad_distributed.distributed.checkpoint.folders import FileSystemReader, FileSystemWriter
from plugrad_distributed.distributed.checkpoint.nesting import Stateful
from plugrad_distributed.distributed.checkpoint.pieces import Piece, pieces_of
from plugrad_distributed.distributed.checkpoint.reading import load
from plugrad_distributed.distributed.checkpoint.writing import async_save, save

__all__ = [
    "CheckpointError",
    "CheckpointException",
    "FileSystemReader",
    "FileSystemWriter",
    "Piece",
    "Stateful",
    "async_save",
    "load",
    "pieces_of",
    "save",
]

CheckpointException = CheckpointError
