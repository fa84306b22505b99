"""What sbatch is asked for: the site's options, the work's resources, and the options that only this tool may set.

Pure. Options are long names without dashes; ``True`` is a bare flag, ``False`` leaves an option of the site out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from outerloop_hpc.config.ownership import refused_option
from outerloop_hpc.errors import ConfigError
from outerloop_hpc.slurm.port import Resources, SubmissionRefused, Work

Option = str | int | bool

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_JOB_ID = re.compile(r"[0-9]{1,20}")
_NODES = re.compile(r"[A-Za-z0-9_.,\[\]-]{1,255}")
_GPU_OPTIONS = frozenset({"gpus", "gpus_per_node", "gpus_per_task", "gpus_per_socket"})
_MEMORY_OPTIONS = frozenset({"mem", "mem_per_cpu", "mem_per_gpu"})


@dataclass(frozen=True, slots=True)
class SiteOptions:
    """What every submission at this site says.

    Attributes:
        account, partition, qos, constraint: as in sbatch; empty ones are left out.
        extra: further sbatch options (``{"wckey": "x", "exclusive": True}``).
        cluster: cluster to submit to; empty for the default one.

    Raises:
        ConfigError: an option that this tool sets itself, or one that could not be written into a batch script.
    """

    account: str = ""
    partition: str = ""
    qos: str = ""
    constraint: str = ""
    extra: Mapping[str, Option] = field(default_factory=lambda: MappingProxyType({}))
    cluster: str = ""

    def __post_init__(self) -> None:
        problem = _refused(normalised(self.extra)) or _unprintable(self.options())
        if problem:
            raise ConfigError(f"[slurm] options: {problem}")

    def options(self) -> dict[str, Option]:
        """Return all of them as sbatch options, names with underscores, empty ones left out."""
        named = {
            "account": self.account,
            "partition": self.partition,
            "qos": self.qos,
            "constraint": self.constraint,
        }
        return normalised({name: value for name, value in named.items() if value}) | normalised(self.extra)


def normalised(options: Mapping[str, Option]) -> dict[str, Option]:
    """Return options under one spelling (``mem_per_cpu`` for ``mem-per-cpu`` and ``--mem-per-cpu``)."""
    return {name.lstrip("-").replace("-", "_"): value for name, value in options.items()}


def parameters(work: Work, site: SiteOptions) -> dict[str, Any]:
    """Return the parameters for submitit's SlurmExecutor.

    No folder stands in them: a newline in its name would end the ``#SBATCH`` line. See ``placement``.

    Raises:
        SubmissionRefused: the work cannot be expressed; the text says which part of it.
    """
    resources = work.resources
    of_work = normalised(resources.options)
    asked = _of_site(resources, site) | of_work
    problem = _refused(of_work) or _unprintable(of_work) or _work_problem(work)
    if problem:
        raise SubmissionRefused(f"{work.name}: not submitted: {problem}")
    extra: dict[str, Option] = {
        **{name: value for name, value in asked.items() if value is not False},
        **_amounts(resources, asked),
        "output": _log_name(work),
        "signal": f"B:USR2@{signal_lead_s(resources)}",
        "no_requeue": True,
    }
    if work.after:
        extra["dependency"] = f"afterany:{work.after}"
    if work.begin_in_s > 0:
        extra["begin"] = f"now+{work.begin_in_s}"
    if work.exclude_nodes:
        extra["exclude"] = ",".join(work.exclude_nodes)
    return {
        "job_name": work.name,
        "time": max(1, resources.minutes),
        "cpus_per_task": max(1, resources.cpus),
        "wckey": None,
        "use_srun": False,
        "stderr_to_stdout": True,
        "array_parallelism": work.parallel if work.parallel > 0 else len(work.arguments),
        "additional_parameters": extra,
    }


def placement(work: Work) -> list[str]:
    """Return the options of sbatch's command line that hold the folder, where no character of it can do harm.

    The log's name is absolute: 26.05 replaces ``%`` in the working folder too when the name is relative, 22.05 does
    not; a doubled ``%`` in an absolute name means itself to both.
    """
    folder = str(work.folder)
    return [f"--chdir={folder}", f"--output={folder.replace('%', '%%')}/{_log_name(work)}"]


def _log_name(work: Work) -> str:
    """The name that submitit looks for."""
    return "%A_%a_0_log.out" if len(work.arguments) > 1 else "%j_0_log.out"


def signal_lead_s(resources: Resources) -> int:
    """Return how many seconds before the walltime USR2 comes: at most half of it, or the job begins with it."""
    return max(1, min(resources.signal_lead_s, resources.minutes * 30))


def _of_site(resources: Resources, site: SiteOptions) -> dict[str, Option]:
    """The site's options, without its memory for all where this step says how much it needs."""
    said = {} if resources.memory_mb is None else dict.fromkeys(_MEMORY_OPTIONS)
    return {name: value for name, value in site.options().items() if name not in said}


def _amounts(resources: Resources, asked: Mapping[str, Option]) -> dict[str, Option]:
    amounts: dict[str, Option] = {}
    if resources.memory_mb is not None and not _MEMORY_OPTIONS & asked.keys():
        amounts["mem"] = f"{resources.memory_mb}M"
    if resources.gpus > 0 and not _names_gpus(asked):
        others = [str(asked["gres"])] if asked.get("gres") else []
        amounts["gres"] = ",".join([*others, f"gpu:{resources.gpus}"])
    return amounts


def _names_gpus(asked: Mapping[str, Option]) -> bool:
    """Whether GPUs are asked for already; a ``gres`` of local disk or licences is none."""
    kinds = {entry.strip().removeprefix("gres/").partition(":")[0] for entry in str(asked.get("gres", "")).split(",")}
    return "gpu" in kinds or not _GPU_OPTIONS.isdisjoint(asked)


def _refused(options: Mapping[str, Option]) -> str | None:
    return next(filter(None, (refused_option(name.replace("_", "-")) for name in options)), None)


def _unprintable(options: Mapping[str, Option]) -> str | None:
    for name, value in options.items():
        if not str(value).isprintable():
            return f"--{name.replace('_', '-')} has a line break or a control character in its value {value!r}"
    return None


def _work_problem(work: Work) -> str | None:
    return next(_work_problems(work), None)


def _work_problems(work: Work) -> Iterator[str]:
    folder = str(work.folder)
    if not _NAME.fullmatch(work.name):
        yield f"the job name {work.name!r} is not 1 to 64 characters of A-Z a-z 0-9 _ . -"
    if not work.arguments:
        yield "it has no element"
    if work.after is not None and not _JOB_ID.fullmatch(work.after):
        yield f"it waits for {work.after!r}, which is no job id"
    if not all(_NODES.fullmatch(node) for node in work.exclude_nodes):
        yield f"it excludes {work.exclude_nodes!r}, which are no node names"
    if not work.folder.is_absolute():
        yield f"its folder {folder!r} is not absolute"
    if any(tag in folder for tag in ("%j", "%t", "%A", "%a")):
        yield f"its folder {folder!r} holds one of %j %t %A %a, which submitit would replace"
    if "\\" in folder:
        yield f"its folder {folder!r} holds a backslash, which Slurm drops from the name of the log"
