"""Checks of this machine, the state folder, the scheduler and the container runtime; each says what to do."""
