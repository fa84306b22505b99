"""Where foreign code runs: Apptainer on sites, bubblewrap for development, nothing only when somebody said so.

Runtimes build command lines (``apptainer``, ``bubblewrap``, ``uncontained``); ``choose`` believes one only after
``probe`` saw it contain. ``image`` knows images by their sha256; ``build`` and ``check`` make and try them. Nothing
here knows what is run.
"""
