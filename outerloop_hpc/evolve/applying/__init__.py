"""What becomes of a promotion: put into a working tree, proposed as a change, measured again."""
