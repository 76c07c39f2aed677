"""Third-party rules, and functions on the ranks' parts."""
