"""The cost of plugrad-viewer's pages."""
