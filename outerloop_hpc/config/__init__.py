"""Configuration: ``settings`` are the values, ``keys`` knows their names, ``sources`` reads and merges the layers."""
