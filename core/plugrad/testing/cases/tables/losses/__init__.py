"""Samples of losses."""

from plugrad.testing.cases.tables.losses import ctc, loss, margin_losses

CASES = [*loss.CASES, *margin_losses.CASES, *ctc.CASES]
