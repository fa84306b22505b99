"""What jobs cost and how well they used it: pure computation from archived accounting rows."""
