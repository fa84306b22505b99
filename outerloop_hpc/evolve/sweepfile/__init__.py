"""A sweep file: read, checked, and resolved to what its run is made for."""
