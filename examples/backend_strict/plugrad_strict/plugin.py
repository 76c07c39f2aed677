"""The backend for `device="strict"`: arrays that support only the array API standard.

array-api-strict rejects everything that the standard does not guarantee. So a program that runs
here runs with any library that follows the standard. Its arrays are in host memory, on devices that
are only names.
"""

from __future__ import annotations

import array_api_strict

from plugrad.plugins import Backend, hookimpl

plugrad_api_version = (1, 0)


@hookimpl
def plugrad_backends() -> list[Backend]:
    """One backend with three devices: "strict" or "strict:0", "strict:1", "strict:2"."""
    return [Backend.from_array_namespace(array_api_strict, "strict")]
