"""The gate: from measured pairs to a decision that can be recomputed. Pure; needs the ``stats`` extra."""
