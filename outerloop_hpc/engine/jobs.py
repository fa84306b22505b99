"""Job definitions: ``jobs/<kind of step>.toml``, shipped with the package, a site's copy in the state folder wins."""

from __future__ import annotations

import tomllib
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from outerloop_hpc.engine.layout import Layout
from outerloop_hpc.engine.spec import ResourceAsk, Scalar
from outerloop_hpc.errors import ConfigError
from outerloop_hpc.shipping import shipped

#: Keys that nothing acts on in a kind of step: who sets one means something, and would not get it.
_IDLE = {
    "measure": {"min_free_gb": "it is looked at before a session alone"},
    "validate": {"min_free_gb": "it is looked at before a session alone"},
    "cell": {"min_free_gb": "it is looked at before a session alone"},
    "propose": {
        "min_free_gb": "it is looked at before a session alone",
        "network": "the sweep file's proposer says it",
    },
    "session": {"network": "[steward] network says it"},
}


class JobDefinition(BaseModel):
    """What one kind of step asks for; minutes and GPUs are added by the kind."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    cpus: int = Field(default=1, ge=1)
    memory_mb: int | None = Field(default=None, ge=1)
    overhead_minutes: int = Field(default=5, ge=0)
    signal_lead_s: int = Field(default=120, ge=0)
    max_tries: int = Field(default=3, ge=1)
    network: bool = False
    min_free_gb: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    options: dict[str, Scalar] = Field(default_factory=dict)

    def ask(self, *, minutes: int, gpus: int, parallel: int) -> ResourceAsk:
        """Return the resources of one element whose own work takes at most ``minutes``."""
        return ResourceAsk(
            minutes=max(1, minutes + self.overhead_minutes),
            cpus=self.cpus,
            memory_mb=self.memory_mb,
            gpus=gpus,
            signal_lead_s=self.signal_lead_s,
            parallel=parallel,
            options=self.options,
        )


def load_job(layout: Layout, job: str) -> JobDefinition:
    """Read the definition of a kind of step.

    Raises:
        ConfigError: there is none, or it says something that it must not; the text names file and key.
    """
    own = layout.root / "jobs" / f"{job}.toml"
    path: Path = own if own.exists() else shipped("jobs") / f"{job}.toml"
    try:
        found = JobDefinition.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError as error:
        raise ConfigError(f"{path}: there is no job definition for {job!r}; reinstall or run `init`") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not readable TOML: {error}") from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(str(part) for part in first["loc"])
        raise ConfigError(f"{path}: {key}: {first['msg']}") from error
    for key, why in _IDLE.get(job, {}).items():
        if key in found.model_fields_set:
            raise ConfigError(f"{path}: {key}: has no effect here: {why}; remove it")
    return found
