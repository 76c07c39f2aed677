"""What the pages of plugrad-viewer cost."""
