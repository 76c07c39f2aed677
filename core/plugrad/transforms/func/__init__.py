"""What `plugrad.func` offers; that is the public door."""
