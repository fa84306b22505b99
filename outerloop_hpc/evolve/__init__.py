"""The evolve kind: propose overlays, measure them beside the incumbent in pairs, decide on evidence, apply."""
