"""Compute behind one port: Slurm through submitit, and the same without Slurm (``local``)."""
