"""The implementation of the kit, on which its test modules are built."""
