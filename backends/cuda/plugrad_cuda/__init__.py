"""The CuPy backend of plugrad: `device="cuda"`, and `plugrad.cuda`."""
