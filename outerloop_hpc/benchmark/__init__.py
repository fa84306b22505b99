"""The benchmark kind: measure a contract's benchmark at a commit with several seeds, and keep the history."""
