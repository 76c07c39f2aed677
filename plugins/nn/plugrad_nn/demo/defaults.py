"""The length of training and the batch size of each program, unless the command sets them."""

from __future__ import annotations

from typing import Final

EPOCHS: Final = {"digits": 15, "text": 40}
BATCH_SIZES: Final = {"digits": 32, "text": 16}
