# Site preamble: what this site needs before outerloop-hpc or a job of it can run. Source it; it prints nothing, sets no
# shell option, and may be sourced twice and by any POSIX shell:
#   . @PREFIX@/etc/site-preamble.sh && outerloop-hpc doctor
#
#   @PREFIX@  where outerloop-hpc is installed (a virtual environment: @PREFIX@/bin/outerloop-hpc exists)
#   @STATE@   the state folder (`[state] root`)
#
# Keep secrets out of it: settings name files of mode 0600, and jobs hold no credential at all.

# cron and services give a short PATH; sbatch, squeue, sacct, git and apptainer must be found.
case ":$PATH:" in
    *":/usr/bin:"*) ;;
    *) PATH="/usr/local/bin:/usr/bin:/bin${PATH:+:$PATH}" ;;
esac
export PATH

# Where apptainer comes as a module, load it here (example):
#   . /etc/profile.d/modules.sh && module load apptainer

# Files in a shared state folder are for the group, and for nobody else.
umask 007

OUTERLOOP_STATE__ROOT=@STATE@
OUTERLOOP_CONFIG=@STATE@/outerloop.toml
export OUTERLOOP_STATE__ROOT OUTERLOOP_CONFIG

# Node-local scratch for clones and containers, where the site names it otherwise than TMPDIR. The value stays as
# written until the node reads it (example):
#   OUTERLOOP_CONTAINER__SCRATCH='$SLURM_TMPDIR'; export OUTERLOOP_CONTAINER__SCRATCH
