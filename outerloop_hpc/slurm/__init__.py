"""Compute behind one port: Slurm through submitit, and the same without Slurm (``local``).

``port`` is what the engine asks for; ``query`` and ``parse`` read squeue and sacct, ``states`` and ``identity`` say
what rows mean, ``submit`` and ``sbatch`` write. Only this package knows Slurm's words and touches submitit: see
docs/slurm.md.
"""
