"""The demo on text: the source of Python's standard library, which is always available, and a small
transformer that reads and writes it character by character."""

from __future__ import annotations

import math
import sysconfig
import zlib
from collections.abc import Iterator
from pathlib import Path

import plugrad
from plugrad import Tensor
from plugrad import device as Device
from plugrad_nn import nn
from plugrad_nn.demo.processes import Ranks
from plugrad_nn.demo.training import Batch, Recipe
from plugrad_nn.nn import functional as F

# The characters: a newline, printable ASCII, and one for all others.
ALPHABET = "\n" + "".join(map(chr, range(32, 127))) + "\ufffd"
CHARACTERS = 2_000_000
HELD_OUT_SHARE = 0.05
# How many characters the model sees, how many steps an epoch has, and how many pieces of held-out
# text decide about the score.
CONTEXT = 64
STEPS = 60
PIECES = 128
WIDTH, HEADS, LAYERS = 64, 4, 2
PROMPT = "\ndef "


def read() -> str:
    """The library's modules one after the other, by name, up to a number of characters."""
    text, length = [], 0
    for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        text.append(path.read_text(encoding="utf-8", errors="replace").replace("\t", "    "))
        length += len(text[-1])
        if length > CHARACTERS:
            break
    return "".join(text)[:CHARACTERS]


def encode(text: str) -> Tensor:
    """Numbers (N) int64 of the characters, on the CPU."""
    numbers = {character: number for number, character in enumerate(ALPHABET)}
    unknown = len(ALPHABET) - 1
    return plugrad.tensor(
        [numbers.get(character, unknown) for character in text], dtype=plugrad.int64, device="cpu"
    )


class Block(nn.Module):
    """Attention to earlier positions, then two linear layers, each with a residual connection."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before_attention = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.project = nn.Linear(width, width)
        self.feed_forward = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: Tensor) -> Tensor:
        """From (N, T, width) to the same."""
        n, length, width = x.shape
        qkv = self.qkv(self.before_attention(x)).reshape(n, length, 3, self.heads, -1)
        query, key, value = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        found = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.project(found.transpose(1, 2).reshape(n, length, width))
        result: Tensor = x + self.feed_forward(x)
        return result


class Writer(nn.Module):
    """A transformer: from characters (N, T) int64 to logits (N, T, characters) of the next ones."""

    def __init__(self, width: int = WIDTH, heads: int = HEADS, layers: int = LAYERS) -> None:
        super().__init__()
        self.characters = nn.Embedding(len(ALPHABET), width)
        self.places = nn.Parameter(plugrad.zeros(CONTEXT, width))
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, len(ALPHABET))

    def forward(self, text: Tensor) -> Tensor:
        x = self.characters(text) + self.places[: text.shape[1]]
        logits: Tensor = self.head(self.norm(self.blocks(x)))
        return logits


def write(model: nn.Module, device: Device, prompt: str, length: int, seed: int) -> str:
    """The prompt and its continuation by the model, drawn with a temperature of 0.7."""
    model.eval()
    numbers = encode(prompt).tolist()
    generator = plugrad.Generator(device="cpu").manual_seed(seed)
    with plugrad.no_grad():
        for _ in range(length):
            # The length never changes, so a backend that compiles for shapes compiles once.
            seen = numbers[-CONTEXT:]
            text = plugrad.tensor([seen + [0] * (CONTEXT - len(seen))], dtype=plugrad.int64)
            logits = model(text.to(device))[0, len(seen) - 1].to("cpu") / 0.7
            drawn = plugrad.multinomial(F.softmax(logits, dim=0), 1, generator=generator)
            numbers.append(int(drawn))
    return "".join(ALPHABET[number] for number in numbers)


class TextTask:
    """Which character comes next? The score is the bits that a held-out character costs."""

    name = "text"
    threads: int | None = None

    def __init__(self, seed: int) -> None:
        text = read()
        split = round(len(text) * (1 - HELD_OUT_SHARE))
        self.characters = len(text)
        self.training, self.held_out = encode(text[:split]), encode(text[split:])
        self.bits_of_zlib = bits_of_zlib(text[:split], text[split:])

    def make_model(self) -> nn.Module:
        return Writer()

    def steps(self, recipe: Recipe) -> int:
        return STEPS

    def batches(self, recipe: Recipe, epoch: int, ranks: Ranks | None) -> Iterator[Batch]:
        generator = plugrad.Generator(device="cpu").manual_seed(recipe.seed + epoch)
        for _ in range(STEPS):
            last = len(self.training) - CONTEXT - 1
            starts = plugrad.randint(
                0, last, (recipe.batch_size,), generator=generator, device="cpu"
            )
            yield self._pieces(self.training, starts)

    def _pieces(self, text: Tensor, starts: Tensor) -> Batch:
        places = starts.unsqueeze(1) + plugrad.arange(CONTEXT + 1, device="cpu")
        pieces = text[places]
        return pieces[:, :-1], pieces[:, 1:]

    def loss(self, model: nn.Module, inputs: Tensor, targets: Tensor) -> Tensor:
        return F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())

    def score(self, model: nn.Module, device: Device) -> float:
        step = (len(self.held_out) - CONTEXT - 1) // PIECES
        starts = plugrad.arange(PIECES, device="cpu") * step
        inputs, targets = (part.to(device) for part in self._pieces(self.held_out, starts))
        model.eval()
        with plugrad.no_grad():
            return float(self.loss(model, inputs, targets)) / math.log(2)

    def told(self, score: float) -> str:
        return f"{score:.2f} bits a character"


def bits_of_zlib(before: str, text: str) -> float:
    """The bits per character of zlib, after it has read the preceding text, for comparison."""
    packer = zlib.compressobj(9)
    packer.compress(before.encode())
    packer.flush(zlib.Z_SYNC_FLUSH)
    packed = packer.compress(text.encode()) + packer.flush()
    return 8 * len(packed) / len(text)
