"""What memory cannot hold is refused at once, in a RuntimeError that says how many bytes it needs.

The calls run in a process with little address space, so that none can harm this one.
"""

from __future__ import annotations

import subprocess
import sys

REFUSED = """
zeros(2**60)
zeros(2**38)
empty(2**38)
full((2**38,), 1.0)
rand(2**38)
randint(5, (2**38,))
arange(10**18)
arange(1e18)
arange(0, 1, 1e-13)
eye(10**6)
linspace(0, 1, 10**12)
logspace(0, 1, 10**12)
randperm(10**12)
tril_indices(10**7, 10**7)
meshgrid(*[arange(1000)] * 5)[0].contiguous()
nn.functional.one_hot(tensor([10**12]))
nn.functional.one_hot(tensor([1]), 10**12)
nn.functional.pad(x, (10**12, 0))
nn.functional.pad(image, (10**9, 0, 10**9, 0), mode='reflect')
nn.functional.pad(image, (10**9, 10**9, 0, 0), mode='circular')
nn.functional.adaptive_avg_pool2d(image, (10**9, 10**9))
nn.functional.adaptive_avg_pool2d(image, (10**9, 1))
nn.functional.conv2d(image, image, padding=10**6)
nn.Linear(10**6, 10**6)
ones(10).tensor_split(10**9)
x.repeat(10**12)
x.repeat_interleave(10**12)
repeat_interleave(tensor([10**12]))
x.tile((10**12,))
wide.contiguous()
wide + 1
wide.exp()
wide.sort()
wide.tolist()
wide.bfloat16().tolist()
wide.reshape(-1)
wide.to(float64)
cat([wide, wide])
zeros_like(wide)
x.resize_(2**38)
x.as_strided((2**40,), (0,)).clone()
ones(10**6).outer(ones(10**6))
ones(10**6, 1) @ ones(1, 10**6)
diag(ones(10**6))
multinomial(x, 10**12, replacement=True)
UntypedStorage(2**40)
"""
FINE = """
repr(wide).count('1.')
repr(wide.T).count('1.')
repr(ones(1).expand(10, 2**40)).count('1.')
len(ones(10).chunk(10**9))
len(x.diff(n=10**9))
"""
PROGRAM = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
from plugrad import *
import plugrad
from plugrad import nn, utils

x, image = ones(4), ones(1, 1, 4, 4)
wide = x.expand(2**40, 4)
names = {**vars(plugrad), "x": x, "image": image, "wide": wide, "nn": nn, "utils": utils}
for text in sys.stdin.read().strip().splitlines():
    try:
        print("result", eval(text, names))
    except Exception as error:
        print(type(error).__name__, str(error).replace(chr(10), " "))
"""


def answers(calls: str) -> dict[str, str]:
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM]
    done = subprocess.run(
        command, input=calls, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return dict(zip(calls.strip().splitlines(), done.stdout.splitlines(), strict=True))


def test_sizes_that_no_memory_holds_are_refused() -> None:
    for call, answer in answers(REFUSED).items():
        assert answer.startswith("RuntimeError"), f"{call}: {answer}"
        assert "can't allocate memory" in answer, f"{call}: {answer}"
        assert "bytes" in answer, f"{call}: {answer}"


def test_what_only_names_large_sizes_is_done() -> None:
    # 3 rows at each edge of 4; the same transposed; 3 + 3 of each dimension.
    expected = ["24", "24", "36", "10", "0"]
    for (call, answer), wanted in zip(answers(FINE).items(), expected, strict=True):
        assert answer == f"result {wanted}", f"{call}: {answer}"
