"""Saved objects come back as they were; hostile files and configuration get a clear error."""

from __future__ import annotations

import io
import json
import os
import random
import struct
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import plugrad
from tests.torture import messages
from tests.torture.finding import Finding, counts

NAME = "files"
SHARE = 0.5

_DTYPES = (
    *("float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8"),
    *("bool", "complex64", "complex128"),
)
_KEYS = ("a", "b.c", "", "__metadata__", "0", 0, -1, "weight", "ü", "a\nb", "a" * 300, "tensor")
_PLAIN = (None, True, False, 0, -1, 1 << 70, 0.5, float("inf"), -0.0, "", "text", "ü\0\n", 1e300)
_REFUSED = ("{1, 2}", "object()", "b'x'", "1j", "{(1, 2): 3}", "{None: 1}", "{True: 1}", "range(3)")
_LOOPS = ("loop", "loop[0]", "deep")
# An empty file raises EOFError, as in PyTorch.
_CLEAR = (TypeError, ValueError, RuntimeError, OSError, NotImplementedError, EOFError)


def prepare() -> None:
    """Load what is loaded at the first use."""
    plugrad.ones(2).sum()


def run_case(seed: int) -> Finding | None:
    rng = random.Random(seed)
    part = rng.choice((_round_trip, _hostile_file, _hostile_structure, _file, _variables, _code))
    counts[part.__name__.strip("_")] += 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return part(rng)


# Saved objects.


def _tensor(rng: random.Random) -> str:
    shape = tuple(rng.choice((0, 1, 2, 3)) for _ in range(rng.randrange(4)))
    dtype = rng.choice(_DTYPES)
    text = f"plugrad.arange({int(np.prod(shape))}).reshape({shape}).to(plugrad.{dtype})"
    if shape and rng.random() < 0.4:
        text += rng.choice((".transpose(0, -1)", "[::2]", f".expand(2, *{shape})", "[..., :1]"))
    if dtype.startswith(("float", "complex")) and rng.random() < 0.3:
        text += ".requires_grad_()"
    return text


def _value(rng: random.Random, depth: int) -> str:
    which = rng.random()
    if depth == 0 or which < 0.4:
        return _tensor(rng) if rng.random() < 0.6 else _plain(rng)
    inner = [_value(rng, depth - 1) for _ in range(rng.randrange(4))]
    if which < 0.6:
        return f"[{', '.join(inner)}]"
    if which < 0.75:
        return f"({', '.join(inner)}{',' * (len(inner) == 1)})"
    keys = [repr(rng.choice(_KEYS)) for _ in inner]
    return "{" + ", ".join(f"{key}: {item}" for key, item in zip(keys, inner, strict=True)) + "}"


def _plain(rng: random.Random) -> str:
    value = rng.choice(_PLAIN)
    return "float('inf')" if value == float("inf") else repr(value)


_ROUND_TRIP = """\
import io, plugrad
loop = [{{}}]
loop[0]["a"] = loop
deep = []
for _ in range(5000):
    deep = [deep]
value = {value}
file = io.BytesIO()
plugrad.save(value, file)
file.seek(0)
print(value, plugrad.load(file))"""


_LOOP: list[Any] = [{}]
_LOOP[0]["a"] = _LOOP
_DEEP: list[Any] = []
for _ in range(5000):
    _DEEP = [_DEEP]


def _round_trip(rng: random.Random) -> Finding | None:
    refused = rng.random() < 0.15
    source = _value(rng, rng.randrange(4))
    if refused:
        wrong = rng.choice((*_REFUSED, *_LOOPS))
        source = rng.choice(("{}", "[{}]", "({{'a': {}}},)")).format(wrong)
    program = _ROUND_TRIP.format(value=source)
    value = eval(source, {"plugrad": plugrad, "loop": _LOOP, "deep": _DEEP})
    file = io.BytesIO()
    try:
        plugrad.save(value, file)
        file.seek(0)
        loaded = plugrad.load(file)
    except Exception as error:
        if (
            refused
            and isinstance(error, (TypeError, ValueError))
            and messages.internal(error) is None
        ):
            return None
        return _finding("save and load", error, program)
    if found := _difference(value, loaded):
        return Finding(f"files: what was saved comes back as something else: {found}", program)
    return None


def _difference(saved: Any, loaded: Any) -> str | None:
    if isinstance(saved, plugrad.Tensor):
        if not isinstance(loaded, plugrad.Tensor):
            return f"a tensor as {type(loaded).__name__}"
        for name in ("shape", "dtype", "requires_grad", "device"):
            if getattr(saved, name) != getattr(loaded, name):
                return f"{name} {getattr(saved, name)} as {getattr(loaded, name)}"
        same = np.array_equal(saved.detach().numpy(), loaded.detach().numpy())
        return None if same else "other values"
    if type(saved) is not type(loaded):
        return f"{type(saved).__name__} as {type(loaded).__name__}"
    if isinstance(saved, dict):
        if list(saved) != list(loaded):
            return f"keys {list(saved)} as {list(loaded)}"
        saved, loaded = list(saved.values()), list(loaded.values())
    if isinstance(saved, (list, tuple)):
        if len(saved) != len(loaded):
            return f"{len(saved)} items as {len(loaded)}"
        for mine, other in zip(saved, loaded, strict=True):
            if found := _difference(mine, other):
                return found
        return None
    return None if saved == loaded or saved != saved else f"{saved!r} as {loaded!r}"


# Files that were not written by save.

_LOAD = """\
import io, plugrad
print(plugrad.load(io.BytesIO({data!r})))"""


def _valid(rng: random.Random) -> bytes:
    file = io.BytesIO()
    plugrad.save({"a": plugrad.arange(4.0), "b": [plugrad.ones(2, 2), 3, ("x",)]}, file)
    return file.getvalue()


def _hostile_file(rng: random.Random) -> Finding | None:
    data = bytearray(_valid(rng))
    for _ in range(rng.choice((1, 1, 2, 5))):
        which = rng.randrange(5)
        if which == 0:
            del data[rng.randrange(len(data) + 1) :]
        elif which == 1 and data:
            data[rng.randrange(len(data))] = rng.randrange(256)
        elif which == 2:
            data[:8] = struct.pack("<Q", rng.choice((0, 1, 1 << 31, 1 << 62, len(data))))
        elif which == 3:
            data += bytes(rng.randrange(64))
        else:
            place = rng.randrange(len(data) + 1)
            data[place:place] = rng.randbytes(rng.randrange(8))
    return _loaded(bytes(data))


_STRUCTURES = (
    *("1", "null", "[]", "{}", '"x"', "{", "", '{"tensor": "missing"}', '{"tensor": 1}'),
    *('{"dict": 1}', '{"dict": [1]}', '{"dict": [["a"]]}', '{"list": {}}', '{"tuple": null}'),
    *('{"dict": [[[1], {"value": 1}]]}', '{"dict": [["a", 3]]}', '{"list": [3]}', '{"value": NaN}'),
    *('{"tensor": "a", "complex128": true}', '{"tensor": "a", "device": "nowhere"}'),
    *('{"tensor": "a", "device": 3}', '{"tensor": "a", "requires_grad": "x"}', "1e999"),
    *('{"tensor": "i", "requires_grad": true}', '{"tensor": "a", "device": "cpu:9"}'),
    *(
        '{"list": ' * 3000 + "1" + "}" * 3000,
        "[" * 100000,
        '{"tensor": ["a"]}',
        '{"dict": [[{}, 1]]}',
    ),
)


def _hostile_structure(rng: random.Random) -> Finding | None:
    header: dict[str, Any] = {
        "__metadata__": {"plugrad": rng.choice(_STRUCTURES)},
        "a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
        "i": {"dtype": "I64", "shape": [1], "data_offsets": [8, 16]},
    }
    if rng.random() < 0.4:
        entry = header[rng.choice("ai")]
        key = rng.choice(list(entry))
        values = (
            "F8_E5M2",
            "X",
            [],
            [-1],
            [1 << 62],
            [0, 8],
            None,
            3,
            [8, 0],
            [[2]],
            "BF16",
            "BOOL",
        )
        entry[key] = rng.choice(values)
        if rng.random() < 0.5:
            header["__metadata__"] = rng.choice(({}, None, {"plugrad": 1}, []))
    text = json.dumps(header).encode()
    return _loaded(struct.pack("<Q", len(text)) + text + bytes(16))


def _loaded(data: bytes) -> Finding | None:
    try:
        plugrad.load(io.BytesIO(data))
    except Exception as error:
        if isinstance(error, _CLEAR) and messages.internal(error) is None:
            return None
        return _finding("load", error, _LOAD.format(data=data))
    return None


# Configuration.

_NAMES = ("device", "backend", "plugins", "disable", "prefer", "fallback", "backends", "kernels")
_TOML = (
    *('"cpu"', '"cuda:1"', '"cpu:0"', '"nowhere"', '""', "1", "true", "[]", '["a", "b"]', "[1]"),
    *("1979-05-27", "{}", '{a = "b"}', "nan", '"none"', '"meta"', '"a:b:c"', '"\\u0000"', "[[]]"),
    *(
        "{cpu = {threads = 1}}",
        "{cpu = 3}",
        '{"a b" = {}}',
        '{cpu = {fallback = "meta"}}',
        "'''x'''",
    ),
    *(
        "[" * 2000 + "]" * 2000,
        "1e400",
        "-1",
        '"cpu,meta"',
        '["plugrad-cpu"]',
        '"' + "x" * 5000 + '"',
    ),
)
_TEXTS = (
    "",
    " ",
    "cpu",
    "cuda",
    "cpu:0",
    "nowhere",
    "a,b",
    ",",
    "none",
    "meta",
    "ü",
    "1",
    "x" * 999,
)

_FILE = """\
import os, pathlib, tempfile, plugrad
folder = tempfile.mkdtemp()
os.chdir(folder)
pathlib.Path({name!r}).write_bytes({data!r})
plugrad.config.reset()
print(plugrad.config.current_config())
print(plugrad.ones(2))"""


def _file(rng: random.Random) -> Finding | None:
    name = rng.choice(("plugrad.toml", "pyproject.toml"))
    lines = [f"{rng.choice(_NAMES)} = {rng.choice(_TOML)}" for _ in range(rng.randrange(4))]
    if rng.random() < 0.3:
        lines.append(
            rng.choice(("[backends.cpu]", "[[backends]]", "[backends]", "[x.y]", "[kernels]"))
        )
        lines.append(f"{rng.choice((*_NAMES, 'threads', 'cpu'))} = {rng.choice(_TOML)}")
    if name == "pyproject.toml":
        lines.insert(0, rng.choice(("[tool.plugrad]", "[tool]\nplugrad = 3", "[[tool.plugrad]]")))
    data = "\n".join(lines).encode()
    if rng.random() < 0.1:
        data = rng.choice((rng.randbytes(20), data + b"\0", b"\xff\xfe" + data, data * 3))
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        Path(name).write_bytes(data)
        try:
            return _configured(_FILE.format(name=name, data=data))
        finally:
            os.chdir(here)
            plugrad.config.reset()


_VARIABLES = """\
import os, plugrad
os.environ.update({values!r})
plugrad.config.reset()
print(plugrad.config.current_config())
print(plugrad.ones(2))"""


def _variables(rng: random.Random) -> Finding | None:
    names = [f"PLUGRAD_{name.upper()}" for name in (*_NAMES, "devices", "nonsense", "disabel")]
    values = {rng.choice(names): rng.choice(_TEXTS) for _ in range(rng.randrange(1, 4))}
    before = dict(os.environ)
    os.environ.update(values)
    try:
        return _configured(_VARIABLES.format(values=values))
    finally:
        os.environ.clear()
        os.environ.update(before)
        plugrad.config.reset()


_CODE = """\
import plugrad
with plugrad.config.set({settings}):
    print(plugrad.config.current_config())
    print(plugrad.ones(2))"""


def _code(rng: random.Random) -> Finding | None:
    values = (*_TEXTS, None, 1, [], ["a"], {}, object, ("cpu",), [1], {"cpu": {"threads": 1}}, 0.5)
    keys = (*_NAMES, "backends.cpu.threads", "backends.", "x.y", "backends.cpu", 3)
    settings = {rng.choice(keys): rng.choice(values) for _ in range(rng.randrange(1, 3))}
    program = _CODE.format(settings=repr(settings).replace("<class 'object'>", "object"))
    try:
        with plugrad.config.set(settings):
            return _configured(program)
    except Exception as error:
        return _checked(error, program)
    finally:
        plugrad.config.reset()


def _configured(program: str) -> Finding | None:
    try:
        plugrad.config.reset()
        plugrad.config.current_config()
        plugrad.ones(2)
    except Exception as error:
        return _checked(error, program)
    return None


def _checked(error: Exception, program: str) -> Finding | None:
    if isinstance(error, _CLEAR) and messages.internal(error) is None:
        return None
    return _finding("configuration", error, program)


def _finding(what: str, error: Exception, program: str) -> Finding:
    why = messages.internal(error) or f"{type(error).__name__}"
    place = messages.place(error)
    return Finding(
        f"files: {what}: {why}: {type(error).__name__}: {str(error)[:300]}",
        program,
        f"{what} {why} {place}",
    )
