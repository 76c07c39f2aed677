"""How long and in which batches each program is trained, unless the command says otherwise."""

from __future__ import annotations

from typing import Final

EPOCHS: Final = {"digits": 15, "text": 40}
BATCH_SIZES: Final = {"digits": 32, "text": 16}
