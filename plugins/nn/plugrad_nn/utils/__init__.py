"""plugrad.utils: the home of plugrad.utils.data, .checkpoint, .hooks and .tensorboard."""

from plugrad_nn.utils import checkpoint, data, hooks, tensorboard

__all__ = ["checkpoint", "data", "hooks", "tensorboard"]
