"""A scripted Slurm: ``sbatch squeue sacct scancel scontrol sinfo`` over one state file with a virtual clock.

``model`` is the state, ``life`` what happens to jobs as time passes, ``commands``, ``queue`` and ``accounting`` what
the six programs answer, ``faults`` how they fail, ``dialect`` what differs between versions. ``site`` is the other
side: it makes the programs, moves the clock and carries out what jobs do. What is known of real clusters is in
``tests/data/sacct``; a test of the slurm tier compares the two. The programs use the standard library alone, so that
each starts in milliseconds.
"""
