"""Build the kernels: one C file, compiled for every processor of a kind, and on x86-64 once more
for those with AVX2. Without a usable C compiler, or with PLUGRAD_PURE=1, the package is installed
without them, and says so where plugrad tells why variants are not used.
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
# Loops are worth -O3. errno and traps for inf and nan are not what anybody asks for.
FLAGS: Final = (
    *("-std=gnu11", "-O3", "-fopenmp-simd", "-fno-math-errno", "-fno-trapping-math"),
    *("-fvisibility=hidden", "-Wall"),
)


def extension(name: str) -> Extension:
    import numpy  # without extensions, it need not be there

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
        # Both modules are made of one file: each has a folder for what it is compiled to.
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
