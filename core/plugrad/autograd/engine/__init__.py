"""The engine that runs backward passes."""
