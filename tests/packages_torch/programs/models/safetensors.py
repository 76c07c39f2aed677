"""safetensors.torch: models and tensors in files."""

import tempfile
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import load, load_file, load_model, save, save_file, save_model
from training import small_net, train


def run():
    model, other = small_net(), small_net()
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "model.safetensors")
        save_model(model, file)
        missing = load_model(other, file)
        assert missing == (set(), []) or missing == ([], []), missing
        tensors = {
            name: torch.randn(3, 2).to(dtype)
            for name, dtype in (
                ("a", torch.float64),
                ("b", torch.bfloat16),
                ("c", torch.int32),
                ("d", torch.bool),
            )
        }
        save_file(tensors, file, metadata={"format": "pt"})
        with safe_open(file, framework="pt", device="cpu") as opened:
            piece = opened.get_slice("a")[1:]
        back = load_file(file)
        raw = load(save(tensors))
    x = torch.randn(5, 4)
    numbers = [one.to(torch.float64) for state in (back, raw) for _, one in sorted(state.items())]
    return [numbers, piece, train(other, lambda: other(x).square().sum())]
