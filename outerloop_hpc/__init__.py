"""outerloop-hpc: a reconciler and an evidence layer over Slurm and submitit."""

__version__ = "0.1.0"
