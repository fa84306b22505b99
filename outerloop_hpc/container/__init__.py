"""Where foreign code runs: Apptainer on sites, bubblewrap for development, nothing only when somebody said so."""
