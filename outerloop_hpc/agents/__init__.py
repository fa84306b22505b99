"""Agents: programs that are given a brief and a workspace, and what they say came of it."""
