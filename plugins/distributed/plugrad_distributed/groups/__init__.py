"""Groups of processes: `ProcessGroup`, the work they do, and which there are."""
