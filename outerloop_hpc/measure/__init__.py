"""Run one benchmark command, read its number, compare numbers honestly, keep the best known ones.

What a number is (``output``), how a command is kept within its limits (``child``, ``warden``, ``capture``), what
became of it (``judge``, ``measurement``), and what numbers say together (``statistics``, ``ledger``). Nothing here
knows of runs or jobs.
"""
