"""What a program and the engine did: recorded as they run, and as data for a page."""
