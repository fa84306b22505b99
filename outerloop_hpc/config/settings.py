"""The settings: frozen values with their defaults. Where they come from is ``sources``.

Every scalar is strict: ``parallel = "4"`` in a file is a mistake that is named, not a 4.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, Strict, model_validator

from outerloop_hpc.config.ownership import refused_option, refused_variable

#: Names of targets: they become folder, mirror and job names.
TARGET_NAME: Final = r"^[A-Za-z0-9_-][A-Za-z0-9_.-]{0,63}$"

#: sbatch options with a key of their own in [slurm].
NAMED_OPTIONS: Final = frozenset({"account", "partition", "qos", "constraint", "clusters"})

Whole = Annotated[int, Strict()]
Number = Annotated[float, Strict()]
Text = Annotated[str, Strict()]
Flag = Annotated[bool, Strict()]
#: A path in a file is relative to that file and may name variables; ``sources`` resolves it before it gets here.
PathText = Annotated[str, Strict(), "path"]
#: A path that means something on the node of a job only; its ``$NAME`` is read there.
NodePathText = Annotated[str, Strict(), "path", "node"]
#: A program: a path when it has a slash, else a name that PATH knows.
ProgramText = Annotated[str, Strict(), "path", "program"]

Count = Annotated[Whole, Field(ge=0)]
Positive = Annotated[Whole, Field(ge=1)]
Amount = Annotated[Number, Field(ge=0, allow_inf_nan=False)]


def _line(value: str) -> str:
    if any(not character.isprintable() for character in value):
        raise ValueError("must be one line of printable characters")
    return value


def _state_folder(value: Path) -> Path:
    text = _line(str(value))
    if not value.is_absolute():
        raise ValueError("must be an absolute path")
    if "\\" in text or any(tag in text for tag in ("%j", "%t", "%A", "%a")):
        raise ValueError("must hold no backslash and none of %j %t %A %a: Slurm and submitit replace them in log names")
    return value


#: A Slurm word (account, partition, …) or a comma-separated list of them; never something that looks like an option.
Word = Annotated[Text, Field(pattern=r"^([^\s-][^\s]*)?$")]


class Section(BaseModel):
    """One section; unknown keys are errors, and nothing changes after it was read."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class State(Section):
    """Where the state folder is, and how much must stay free on it.

    Attributes:
        root: the state folder; ``sources`` puts ``$XDG_STATE_HOME/outerloop-hpc`` where nothing is said.
        min_free_gb: below it nothing new is launched (10^9 bytes).
    """

    root: Annotated[Path, "path", AfterValidator(_state_folder)]
    min_free_gb: Amount = 1.0


class Compute(Section):
    """Where work runs.

    Attributes:
        kind: ``auto`` is Slurm when sbatch is on PATH, else this machine.
        parallel: elements that run at once on this machine; 0 for as many as it has CPUs.
    """

    kind: Literal["auto", "slurm", "local"] = "auto"
    parallel: Count = 0


def _free_options(options: object) -> object:
    """Check names and values in one place: a union of types would be explained three times for one mistake."""
    if not isinstance(options, Mapping):
        raise ValueError("must be a table of sbatch options")  # noqa: TRY004 - pydantic explains ValueError only
    for option, value in options.items():
        problem = _named_option(str(option)) or refused_option(str(option))
        if problem:
            raise ValueError(problem)
        if not isinstance(value, str | int):
            raise ValueError(f"{option}: must be text, a whole number, true or false")  # noqa: TRY004 - as above
        if isinstance(value, str):
            _line(value)
    return options


def _named_option(option: str) -> str | None:
    for named in sorted(NAMED_OPTIONS):
        if option and named.startswith(option):
            return f"{option!r} has a key of its own: [slurm] {named.replace('clusters', 'cluster')}"
    return None


class Slurm(Section):
    """The cluster, and what every job asks for. An empty text is left out of the submission.

    Attributes:
        options: further sbatch options, long names without dashes; ``true`` is a flag, ``false`` leaves it out.
        wake: whether each submission also gets a tiny job that moves its run on without a tick.
        python: interpreter of the jobs, outside any container; empty for the one that runs now.
        timeout_s: seconds that one query or cancellation may take.
        submit_timeout_s: seconds that one sbatch may take; a busy controller lets it wait long.
    """

    cluster: Word = ""
    account: Word = ""
    partition: Word = ""
    qos: Word = ""
    constraint: Word = ""
    options: Annotated[Mapping[str, str | int | bool], BeforeValidator(_free_options)] = Field(default_factory=dict)
    wake: Flag = False
    python: Annotated[ProgramText, AfterValidator(_line)] = ""
    timeout_s: Positive = 60
    submit_timeout_s: Positive = 180


class Reconcile(Section):
    """How long to wait before something is believed; seconds.

    Attributes:
        confirm_s: a job must be absent this long before its ending holds; its record may reach this host so late.
        soft_window_s: the same for endings that a requeue can undo.
        grace_s: a job that nobody has ever seen may stay unseen this long.
        submit_lag_s: an unanswered submission may show up this late.
        skew_s: clocks may differ by this.
        max_tries: executions of a step, the first included.
        backoff_s: before the second try; doubles each time.
        archive_wait_s: accounting may be incomplete this long after the end.
        min_interval_s: between two questions to the same cluster, whichever passes ask them.
        ask_again_s: until a scheduler that did not answer is asked again; doubles, up to ten minutes.
    """

    confirm_s: Count = 60
    soft_window_s: Count = 150
    grace_s: Count = 3600
    submit_lag_s: Count = 600
    skew_s: Count = 300
    max_tries: Positive = 3
    backoff_s: Count = 60
    archive_wait_s: Count = 600
    min_interval_s: Count = 10
    ask_again_s: Count = 10


class Limits(Section):
    """What may be spent; 0 is no limit for ``runs_per_week`` and ``gpu_hours_per_run``."""

    submissions_per_tick: Positive = 20
    live_runs: Positive = 50
    runs_per_week: Count = 0
    gpu_hours_per_run: Amount = 0.0
    eval_minutes: Positive = 1440


class Container(Section):
    """How a job contains what it runs.

    Attributes:
        runtime: ``auto`` takes the first that works on the node.
        uncontained: whether running without any container is allowed.
        scratch: node-local folder; empty for the job's TMPDIR. A leading ``$NAME`` is read on the node.
    """

    runtime: Literal["auto", "apptainer", "singularity", "bubblewrap", "none"] = "auto"
    uncontained: Flag = False
    scratch: Annotated[NodePathText, AfterValidator(_line)] = ""


class Bench(Section):
    """Benchmark lane: seeds per commit, hours between runs (0: only when the head moved), elements at once (0: all)."""

    seeds: Positive = 5
    every_hours: Count = 0
    parallel: Count = 0


class Forge(Section):
    """Where orders and proposed changes are.

    Attributes:
        kind: ``local`` keeps them as files under the state folder.
        identity: the name under which the tool writes there; nobody else may write under it.
    """

    kind: Literal["local"] = "local"
    identity: Annotated[Text, Field(pattern=r"^[A-Za-z0-9_.\[\]-]{1,64}$")] = "outerloop"


class Housekeeping(Section):
    """What each tick clears away, oldest first, and how much of it.

    While the disk of the state folder is short there is no grace, and ten times as much is done.

    Attributes:
        grace_hours: leftovers, and what a closed run keeps for debugging, stay so long.
        items: things that one tick goes over.
        seconds: that one tick may take over it.
    """

    grace_hours: Count = 24
    items: Positive = 20
    seconds: Positive = 30


def _key_variable(value: str) -> str:
    if problem := refused_variable(value):
        raise ValueError(problem)
    return value


class Agent(Section):
    """The program that plays a role. It runs contained, and sees its workspace, its brief and its own key.

    Attributes:
        command: program and arguments as they are named inside; ``{files}`` stands for the folder ``files`` there.
        files: folder of the host that it sees read-only; empty for none.
        key_file: file of mode 0600 with its key; empty for none. Two roles never share one.
        key_env: variable in which it finds the key.
        network: whether it may use the network.
    """

    command: tuple[Annotated[Text, AfterValidator(_line)], ...] = ()
    files: Annotated[PathText, AfterValidator(_line)] = ""
    key_file: Annotated[PathText, AfterValidator(_line)] = ""
    key_env: Annotated[Text, Field(pattern=r"^([A-Z][A-Z0-9_]{0,63})?$"), AfterValidator(_key_variable)] = ""
    network: Flag = True

    @model_validator(mode="after")
    def _key_can_be_found(self) -> Self:
        if self.key_file and not self.key_env:
            raise ValueError("key_file is set, and key_env is not: the session could not find its key; set key_env")
        return self


class Steward(Agent):
    """The steward lane; off without a ``command``.

    Attributes:
        label: orders with this label are the steward's.
        authors: whose orders are taken; empty for all that the forge vouches for.
        seeds: fresh seeds with which a candidate is measured.
        live: runs for a target at the same time; their changes touch the same ledger.
        turns: turns of a session. minutes: of a session. A contract may lower both.
        attempts: that may fail. outages: that are given back. Then a person is needed.
        outage_minutes: pause of the role after a refusal. throttle_minutes: after being throttled.
    """

    label: Annotated[Text, AfterValidator(_line), Field(min_length=1)] = "outerloop:steward"
    authors: tuple[Annotated[Text, AfterValidator(_line)], ...] = ()
    seeds: Positive = 5
    live: Positive = 1
    turns: Positive = 120
    minutes: Positive = 90
    attempts: Positive = 3
    outages: Positive = 5
    outage_minutes: Positive = 45
    throttle_minutes: Positive = 5


class Target(Section):
    """A repository under improvement.

    Attributes:
        repository: folder or URL.
        branch: the branch that is measured.
        image: container image for its work; empty for what its contract says.
        benchmarks: which of its benchmarks; empty for all.
        validation: command that a steward's candidate must pass, run in its root; empty for none.
        validation_minutes: how long it may take.
    """

    repository: Annotated[PathText, AfterValidator(_line), Field(min_length=1)]
    branch: Annotated[Text, Field(pattern=r"^[^\s-][^\s]*$")] = "main"
    image: Annotated[PathText, AfterValidator(_line)] = ""
    benchmarks: tuple[Annotated[Text, Field(pattern=r"^[^\s-][^\x00-\x1f]*$")], ...] = ()
    validation: Annotated[Text, AfterValidator(_line)] = ""
    validation_minutes: Positive = 30


class Settings(Section):
    """Everything that can be configured."""

    state: State
    compute: Compute = Compute()
    slurm: Slurm = Slurm()
    reconcile: Reconcile = Reconcile()
    limits: Limits = Limits()
    container: Container = Container()
    bench: Bench = Bench()
    housekeeping: Housekeeping = Housekeeping()
    forge: Forge = Forge()
    steward: Steward = Steward()
    targets: Mapping[Annotated[str, Field(pattern=TARGET_NAME)], Target] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _each_role_has_its_own_key(self) -> Self:
        """Compare the files behind the names: a link to another role's key is that key."""
        owners: dict[str, str] = {}
        for role, section in self:
            if isinstance(section, Agent) and section.key_file:
                file = os.path.realpath(section.key_file)
                owner = owners.setdefault(file, role)
                if owner != role:
                    raise ValueError(f"[{owner}] and [{role}] have one key_file, {file}; give each role its own key")
        return self
