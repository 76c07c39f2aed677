"""`plugrad.distributed.algorithms.model_averaging`: averages of models that ranks train on their
own for some steps."""

from __future__ import annotations
