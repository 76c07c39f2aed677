"""Build the kernels: one C file, compiled for the architecture's baseline, and on x86-64 again for
AVX2. Without a usable C compiler, or with PLUGRAD_PURE=1, the package is installed without them;
plugrad then gives that as the reason why its variants are not used.
"""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any, Final

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

AVX2: Final = "plugrad_native._avx2"
PORTABLE: Final = "plugrad_native._portable"
# Loops profit from -O3. The kernels need neither errno nor traps for inf and nan.
FLAGS: Final = (
    *("-std=gnu11", "-O3", "-fopenmp-simd", "-fno-math-errno", "-fno-trapping-math"),
    *("-fvisibility=hidden", "-Wall"),
)


def extension(name: str) -> Extension:
    import numpy  # only builds with extensions need NumPy

    return Extension(
        name,
        ["src/native.c", "src/steps.c"],
        depends=[str(path) for path in Path("src").glob("*.h")],
        include_dirs=[numpy.get_include()],
        define_macros=[("MODULE", name.rpartition(".")[2])],
        optional=True,
    )


class BuildKernels(build_ext):
    def build_extension(self, ext: Any) -> None:
        if self.compiler.compiler_type == "msvc":
            ext.extra_compile_args = [
                "/O2",
                "/std:c11",
                *(["/arch:AVX2"] if ext.name == AVX2 else []),
            ]
        else:
            ext.extra_compile_args = [*FLAGS, *(["-mavx2", "-mfma"] if ext.name == AVX2 else [])]
        # Both modules are compiled from one file, so each needs its own folder for object files.
        before = self.build_temp
        self.build_temp = str(Path(before) / ext.name)
        try:
            super().build_extension(ext)
        finally:
            self.build_temp = before


def extensions() -> list[Extension]:
    if os.environ.get("PLUGRAD_PURE", "") not in ("", "0"):
        return []
    wide = platform.machine().lower() in ("x86_64", "amd64")
    return [extension(name) for name in ([PORTABLE, AVX2] if wide else [PORTABLE])]


setup(ext_modules=extensions(), cmdclass={"build_ext": BuildKernels})
