"""Creates tensors: from data, at random, on another device."""
