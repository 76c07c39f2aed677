"""Models train on a backend with emulated fused kernels as they do on the CPU."""

from __future__ import annotations

import numpy as np

import plugrad
from plugrad import nn, optim
from plugrad.nn import functional as F
from tests.cuda.emulation.runtime import Emulation


class Net(nn.Module):
    """Words and images to classes, by all that is fused."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(7, 6)
        self.norm = nn.LayerNorm(6)
        self.images = nn.Sequential(
            nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(4, 6, 2), nn.AvgPool2d(2),
        )  # fmt: skip
        self.classes = nn.Linear(6, 3)

    def forward(self, words: plugrad.Tensor, images: plugrad.Tensor) -> plugrad.Tensor:
        seen = self.images(images).flatten(1)
        known = self.norm(self.words(words))
        mixed = known * F.softmax(seen, 1).unsqueeze(1)
        return self.classes(mixed.sum(1))


def trained(device: str) -> tuple[list[float], dict[str, np.ndarray]]:
    plugrad.manual_seed(0)
    rng = np.random.default_rng(0)
    model = Net().to(device)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    words = plugrad.from_numpy(rng.integers(0, 7, (5, 4))).to(device)
    images = plugrad.from_numpy(rng.normal(size=(5, 2, 6, 6)).astype(np.float32)).to(device)
    labels = plugrad.from_numpy(rng.integers(0, 3, 5)).to(device)
    losses = []
    for _ in range(4):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(words, images), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    state = {name: t.detach().cpu().numpy() for name, t in model.state_dict().items()}
    return losses, state


def test_a_model_with_all_that_is_fused(emulation: Emulation, emulated_device: str) -> None:
    before = emulation.launched.copy()
    losses, state = trained(emulated_device)
    launched = {name.split("<")[0] for name in emulation.launched - before}
    assert launched >= {
        "softmax_rows", "softmax_backward_rows", "layer_norm", "layer_norm_to_input",
        "batch_statistics", "batch_to_input", "nll_forward", "nll_backward", "embedding",
        "embedding_backward", "max_pool", "max_pool_backward", "avg_pool", "avg_pool_backward",
        "convolve", "convolve_to_input", "convolve_to_weight", "channel_sums",
    }  # fmt: skip
    expected_losses, expected = trained("cpu")
    assert losses[-1] < losses[0]
    np.testing.assert_allclose(losses, expected_losses, rtol=1e-4)
    assert state.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_allclose(state[name], values, rtol=1e-3, atol=1e-4, err_msg=name)
