"""What jobs of a sweep do: a proposal, a cell."""
