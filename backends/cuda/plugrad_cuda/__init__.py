"""The place of the CuPy backend: nothing is provided yet."""
