"""Matrix factorizations that NumPy lacks, on the host, for backends without kernels for them.

They work on NumPy arrays: batches (*, m, n), column by column, all matrices of a batch at once.
"""
