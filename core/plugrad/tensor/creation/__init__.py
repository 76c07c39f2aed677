"""How tensors come to be: from data, at random, on another device."""
