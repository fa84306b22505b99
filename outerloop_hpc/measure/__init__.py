"""Run one benchmark command, read its number, compare numbers honestly, keep the best known ones."""
