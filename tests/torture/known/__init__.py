"""Where plugrad differs from PyTorch and is meant to; docs/reliability.md gives the reasons.

A table for each kind of finding: `operators`, `refusals` and `programs`."""
