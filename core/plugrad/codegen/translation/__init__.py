"""Changes to the C that mypyc writes, before it is compiled: `core/setup.py` calls them."""
