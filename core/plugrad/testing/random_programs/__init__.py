"""Random programs for property-based tests (needs hypothesis), and how two runs are compared."""

from __future__ import annotations

from plugrad.testing.random_programs.compare import difference
from plugrad.testing.random_programs.program import Program, Statement
from plugrad.testing.random_programs.stage import Stage, run_program
from plugrad.testing.random_programs.writing import Features, programs, write_program

__all__ = [
    "Features",
    "Program",
    "Stage",
    "Statement",
    "difference",
    "programs",
    "run_program",
    "write_program",
]
