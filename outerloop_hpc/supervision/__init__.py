"""One command under supervision: limits, an early stop, capped output, and nothing left behind."""
