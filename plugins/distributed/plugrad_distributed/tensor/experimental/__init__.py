"""Rules of third parties, and functions on the ranks' parts."""
