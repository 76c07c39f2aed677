"""Groups of processes: `ProcessGroup`, their `Work`, and the registry of groups."""
