"""Settings of the process: whether results must be the same in every run, and how often to warn."""

from __future__ import annotations

# Interpreted: it is rarely used and holds only a few values.
import warnings
from typing import Final


class Settings:
    """What `plugrad.use_deterministic_algorithms` and the like have set, for all threads."""

    def __init__(self) -> None:
        self.deterministic = False
        self.warn_only = False
        self.warn_always = False
        self.matmul_precision = "highest"


settings: Final = Settings()


def alert_not_deterministic(name: str) -> None:
    """Kernels with results that may differ from run to run call this before they compute.

    Does nothing unless `plugrad.use_deterministic_algorithms` requests the same results in every
    run; then it raises RuntimeError, or warns if that was requested.

    >>> import plugrad
    >>> from plugrad.plugins.kernel_errors import alert_not_deterministic
    >>> alert_not_deterministic("histogram_cuda")
    >>> plugrad.use_deterministic_algorithms(True)
    >>> alert_not_deterministic("histogram_cuda")
    Traceback (most recent call last):
    ...
    RuntimeError: histogram_cuda does not have a deterministic implementation, but you set \
'plugrad.use_deterministic_algorithms(True)'. You can turn off determinism just for this \
operation, or you can use the 'warn_only=True' option, if that's acceptable for your application.
    >>> plugrad.use_deterministic_algorithms(False)
    """
    if not settings.deterministic:
        return
    text = f"{name} does not have a deterministic implementation, but you set "
    if settings.warn_only:
        asked = "'plugrad.use_deterministic_algorithms(True, warn_only=True)'."
        warnings.warn(text + asked, UserWarning, stacklevel=2)
        return
    raise RuntimeError(
        f"{text}'plugrad.use_deterministic_algorithms(True)'. You can turn off determinism just "
        "for this operation, or you can use the 'warn_only=True' option, if that's acceptable for "
        "your application."
    )
