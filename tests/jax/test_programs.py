"""Programs that were written for PyTorch, on JAX: as they are, and with captured steps."""

from __future__ import annotations

import re

import pytest

from tests.as_torch.programs import printed

pytest.importorskip("plugrad_as_torch", reason="plugrad-as-torch is not installed")

# Prints how often steps were compiled, after the program's output.
COUNTING = """
import sys
import plugrad
from plugrad_as_torch.running import run

made, compile = [], plugrad.compile
plugrad.compile = lambda function: made.append(compile(function)) or made[-1]
run(sys.argv[1:])
print("traced", [step.traces for step in made])
"""


def numbers(text: str) -> list[float]:
    return [float(number) for number in re.findall(r"-?\d+\.?\d*", text)]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("cnn", "--epochs 2 --pictures 96"),
        ("vae", "--epochs 2 --pictures 128"),
        ("gan", "--steps 3 --every 1"),
    ],
)
def test_a_program_prints_what_it_prints_on_the_cpu(name: str, words: str) -> None:
    expected = printed(name, *words.split())
    before = ("-m", "plugrad.as_torch", "--host-numbers")
    found = printed(name, *words.split(), before=before, PLUGRAD_BACKEND="jax")
    assert numbers(found) == pytest.approx(numbers(expected), abs=2e-3)
    assert re.sub(r"\d", "", found) == re.sub(r"\d", "", expected)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("lstm_language_model", "--epochs 2 --repeats 1 --bptt 6"),
        ("vae", "--epochs 2 --pictures 128"),
        ("gan", "--steps 4 --every 1"),
    ],
)
def test_a_captured_step_of_a_program_prints_the_same(name: str, words: str) -> None:
    expected = printed(name, *words.split(), PLUGRAD_BACKEND="jax")
    captured = printed(
        name, *words.split(), "--compile", before=("-c", COUNTING), PLUGRAD_BACKEND="jax"
    )
    found, _, traced = captured.partition("traced ")
    assert numbers(found) == pytest.approx(numbers(expected), abs=2e-3)
    # Again when the optimizer has its state, and for the last, shorter piece of text.
    assert 1 <= int(traced.strip("[]\n")) <= 4
