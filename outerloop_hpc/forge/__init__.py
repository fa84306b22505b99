"""Orders, their comments and proposed changes, on whatever forge a target has."""
