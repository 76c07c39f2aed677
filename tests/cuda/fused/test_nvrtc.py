"""NVIDIA's run-time compiler takes the sources, every kernel of every dtype; it needs no GPU."""

from __future__ import annotations

from typing import Any

import pytest

from plugrad_cuda.fused import EXPRESSIONS
from plugrad_cuda.fused.runtime import OPTIONS, source_text

# The oldest architecture that CUDA 12 compiles for, the H100's and the A100's. CUDA 13
# begins with compute_75.
ARCHITECTURES = [
    "compute_70",
    pytest.param("compute_90", marks=pytest.mark.slow),
    pytest.param("compute_80", marks=pytest.mark.long),
]


@pytest.fixture(scope="module")
def nvrtc() -> Any:
    found = pytest.importorskip("cupy_backends.cuda.libs.nvrtc", reason="CuPy is not installed")
    try:
        version = found.getVersion()
    except RuntimeError:  # what CuPy raises when it finds no library
        pytest.skip("there is no NVRTC: pip install nvidia-cuda-nvrtc-cu12")
    if version < (12, 0):
        pytest.skip(f"NVRTC {version} is older than CUDA 12")
    return found


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("source", EXPRESSIONS)
def test_source_compiles_to_ptx(nvrtc: Any, source: str, architecture: str) -> None:
    oldest = min(nvrtc.getSupportedArchs())
    number = max(int(architecture.removeprefix("compute_")), oldest)
    options = (*OPTIONS, f"--gpu-architecture=compute_{number}")
    program = nvrtc.createProgram(source_text(source), f"{source}.cu", (), ())
    try:
        for kernel in EXPRESSIONS[source]:
            nvrtc.addNameExpression(program, kernel)
        try:
            nvrtc.compileProgram(program, options)
        except nvrtc.NVRTCError:
            pytest.fail(nvrtc.getProgramLog(program))
        ptx = nvrtc.getPTX(program)
        ptx = ptx if isinstance(ptx, bytes) else ptx.encode()
        for kernel in EXPRESSIONS[source]:
            lowered = nvrtc.getLoweredName(program, kernel)
            name = lowered if isinstance(lowered, bytes) else lowered.encode()
            assert b".entry " + name in ptx
    finally:
        nvrtc.destroyProgram(program)
