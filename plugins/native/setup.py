"""Build the kernels: one C file, compiled for the architecture's baseline, and on x86-64 again for
AVX2 and for AVX-512. Without a usable C compiler, or with PLUGRAD_PURE=1, the package is installed
without them; plugrad then gives that as the reason why its variants are not used.
"""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any, Final

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

# The modules, with the flags of GCC and clang and those of MSVC. Vectors of 512 bits are not what
# compilers take by themselves.
AVX512: Final = [
    *("-mavx512f", "-mavx512dq", "-mavx512bw", "-mavx512vl"),
    "-mprefer-vector-width=512",
]
MODULES: Final[dict[str, tuple[list[str], list[str]]]] = {
    "plugrad_native._portable": ([], []),
    "plugrad_native._avx2": (["-mavx2", "-mfma"], ["/arch:AVX2"]),
    "plugrad_native._avx512": (["-mavx2", "-mfma", *AVX512], ["/arch:AVX512"]),
}
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
        flags, flags_of_msvc = MODULES[ext.name]
        if self.compiler.compiler_type == "msvc":
            ext.extra_compile_args = ["/O2", "/std:c11", *flags_of_msvc]
        else:
            ext.extra_compile_args = [*FLAGS, *flags]
        # All modules are compiled from one file, so each needs its own folder for object files.
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
    return [extension(name) for name in MODULES if wide or not MODULES[name][0]]


setup(ext_modules=extensions(), cmdclass={"build_ext": BuildKernels})
