"""What the families that try the engine's threads share."""
