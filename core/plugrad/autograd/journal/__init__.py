"""Writes down what a program and the engine do, event by event, in as little time as it can."""
