"""Where candidates come from: prepared overlays, a grid, a search, any program, an agent. One module each."""
