"""Pictures of graphs and recordings of runs: the distribution behind `plugrad.viewer`."""
