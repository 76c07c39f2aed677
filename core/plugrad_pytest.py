"""The options of plugrad's conformance kit, for pytest.

This is loaded in every run of pytest where plugrad is installed, so it imports nothing. The kit
itself, `plugrad.testing.conformance`, is imported when one of the options is used.
"""

from __future__ import annotations

from typing import Any

KIT = "plugrad.testing.conformance"


def pytest_addoption(parser: Any) -> None:
    group = parser.getgroup("plugrad", "conformance of plugrad's backends and operators")
    group.addoption(
        "--plugrad-backend",
        action="append",
        default=[],
        metavar="NAME",
        help=f"run the kit on this backend: pytest --pyargs {KIT} --plugrad-backend=NAME",
    )
    group.addoption(
        "--plugrad-level",
        choices=("core", "full"),
        default=None,
        help="core: only what every backend must be able to do. full: everything the CPU can; it "
        "is an error if the backend cannot. By default everything the backend claims is tried.",
    )
    group.addoption(
        "--plugrad-op",
        action="append",
        default=[],
        metavar="NS::NAME",
        help="run the kit on this operator's cases, on every installed backend or on those given",
    )
    group.addoption(
        "--plugrad-report",
        action="append",
        default=[],
        metavar="PATH",
        help="write the certificate to a file that ends in .json or .html",
    )
    group.addoption(
        "--plugrad-share",
        type=float,
        default=1.0,
        metavar="PART",
        help="run this part of the kit's tests, such as 0.25, chosen by chance; that certifies "
        "nothing",
    )
    group.addoption(
        "--plugrad-seed",
        type=int,
        default=None,
        metavar="N",
        help="the seed of the share; repeat a run with the seed that it printed",
    )


def pytest_configure(config: Any) -> None:
    option = config.option
    wanted = option.plugrad_backend or option.plugrad_op
    if wanted or any(str(arg).startswith(KIT) for arg in config.args):
        from plugrad.testing.conformance.kit.session import install

        install(config)
    elif option.plugrad_report or option.plugrad_level:
        import pytest

        raise pytest.UsageError(
            "--plugrad-report and --plugrad-level need --plugrad-backend=NAME or --plugrad-op"
        )
