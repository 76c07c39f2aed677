"""Tensor parallel modules: which parameters are cut, and how inputs and outputs lie."""
