"""The kit finds what is wrong with a backend, in the topic that is about it, and only there."""

from __future__ import annotations

import pytest

from tests.core.testing.conformance.broken_backends import BROKEN, SoundBackend
from tests.core.testing.conformance.runs import run_kit_on


@pytest.mark.parametrize("name", BROKEN)
def test_it_is_found(name: str) -> None:
    broken = BROKEN[name]
    selected = [f"--plugrad-op={broken.operator}"] if broken.operator else []
    run = run_kit_on(broken.make(), *selected, topics=(broken.topic,))
    assert run.topics() == {broken.topic}
    assert run.code == 1
    assert not run.certificates["broken"].certified("core")


@pytest.mark.parametrize("topic", sorted({broken.topic for broken in BROKEN.values()}))
def test_a_sound_backend_passes(topic: str) -> None:
    names = {b.operator for b in BROKEN.values() if b.topic == topic and b.operator}
    selected = [f"--plugrad-op={name}" for name in sorted(names)]
    run = run_kit_on(SoundBackend(), *selected, topics=(topic,))
    assert run.failures == {}
    assert run.passed > 0
    assert run.code == 0
