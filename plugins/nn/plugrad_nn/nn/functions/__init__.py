"""The functions of `plugrad.nn.functional`, by what they compute."""
