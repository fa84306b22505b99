"""The checks of ``outerloop-hpc doctor``: each looks at one thing and says what it saw and what to do about it."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from outerloop_hpc import fsio
from outerloop_hpc.config.settings import Settings
from outerloop_hpc.config.sources import home_folder
from outerloop_hpc.container.choose import choose
from outerloop_hpc.doctor.finding import Finding, Level
from outerloop_hpc.doctor.roles import RoleChecks
from outerloop_hpc.engine import room
from outerloop_hpc.engine.layout import Layout
from outerloop_hpc.errors import OuterloopError
from outerloop_hpc.process import Runner
from outerloop_hpc.slurm.environment import query_environment
from outerloop_hpc.target.mirror import ask

_OLDEST_GIT = (2, 31)
_SKEW_S = 5.0
#: Ticks come every few minutes; after so long without one something has taken them away.
_LATE_HOURS = 1.0
_TIMEOUT_S = 20.0


@dataclass(frozen=True, slots=True)
class Doctor:
    """Runs the checks.

    Attributes:
        compute: where new work is meant to go: ``slurm`` or ``local``.
    """

    settings: Settings
    layout: Layout
    environ: Mapping[str, str]
    run: Runner
    compute: str

    def examine(self) -> Iterator[Finding]:
        """Yield the findings of every check; a check that breaks is a finding itself."""
        roles = RoleChecks(self.settings, self.layout, self.environ, self.run)
        checks: tuple[Callable[[], Iterator[Finding]], ...] = (
            self._folder,
            self._probes,
            self._space,
            self._clock,
            self._git,
            self._scheduler,
            self._containers,
            self._targets,
            roles.forge,
            roles.definitions,
            roles.roles,
            self._last_pass,
        )
        for check in checks:
            try:
                yield from check()
            except (OuterloopError, OSError) as error:
                yield Finding(check.__name__.strip("_"), Level.FAIL, str(error))

    def _folder(self) -> Iterator[Finding]:
        root = self.layout.root
        mode = root.stat().st_mode
        level = Level.WARN if mode & 0o002 else Level.OK
        advice = "others may write here: a pickle is code, so chmod o-w" if mode & 0o002 else ""
        yield Finding("state folder", level, f"{root} ({mode & 0o7777:04o})", advice)
        for sentinel in ("PAUSE", "HOLD"):
            if (self.layout.tick / sentinel).exists():
                yield Finding("sentinel", Level.WARN, f"{sentinel} is set", f"remove {self.layout.tick / sentinel}")

    def _probes(self) -> Iterator[Finding]:
        found = fsio.probe(self.layout.root)
        if not found.exclusive:
            advice = "two ticks could buy a job twice: put the state folder on another filesystem"
            yield Finding("exclusive publication", Level.FAIL, "; ".join(found.failures), advice)
        elif not found.link:
            saw = f"no hard links here ({'; '.join(found.failures)}); exclusive folders are used instead"
            yield Finding("exclusive publication", Level.WARN, saw, "works, with one more inode a document")
        else:
            yield Finding("exclusive publication", Level.OK, "link() refuses a taken name")
        yield Finding("rename", Level.OK if found.rename else Level.FAIL, "a file replaces another whole")
        yield Finding("fsync", Level.OK if found.sync else Level.FAIL, "files and folders can be made durable")

    def _space(self) -> Iterator[Finding]:
        """Write a file: a quota that is used up does not show in what a filesystem says of itself."""
        wanted = int(self.settings.state.min_free_gb * 10**9)
        if lack := room.lacking(self.layout.root, wanted):
            yield Finding("room", Level.WARN, lack, "nothing is launched until there is room; see [state] min_free_gb")
        else:
            free = shutil.disk_usage(self.layout.root).free
            yield Finding("room", Level.OK, f"{free / 10**9:.1f} GB, {wanted / 10**9:g} wanted; a file can be written")
        home = home_folder(self.environ)
        if lack := room.lacking(home, room.HOME_BYTES):
            yield Finding("home", Level.WARN, lack, "what writes there may fail, sessions too: free space")
        else:
            yield Finding("home", Level.OK, f"{home}: a file can be written")

    def _clock(self) -> Iterator[Finding]:
        """Compare this host's clock with the file server's; ages are measured by sightings, so skew only delays."""
        probe = self.layout.root / f".tmp-clock-{fsio.nonce()}"
        before = time.time()
        probe.write_bytes(b"1")
        skew = probe.stat().st_mtime - before
        probe.unlink()
        level = Level.OK if abs(skew) <= _SKEW_S else Level.WARN
        advice = "" if level is Level.OK else "mend NTP on this host or on the file server"
        yield Finding("clock", level, f"{skew:+.1f} s against the filesystem's", advice)

    def _git(self) -> Iterator[Finding]:
        finished = self.run(["git", "--version"], timeout=_TIMEOUT_S, env=dict(self.environ))
        match = re.search(r"(\d+)\.(\d+)", finished.stdout)
        if not finished.ok or match is None:
            yield Finding("git", Level.FAIL, finished.complaint(), "install git or load its module")
            return
        new = (int(match[1]), int(match[2])) >= _OLDEST_GIT
        advice = "" if new else "git 2.31 or newer is needed"
        yield Finding("git", Level.OK if new else Level.FAIL, finished.stdout.strip(), advice)

    def _scheduler(self) -> Iterator[Finding]:
        if self.compute == "local":
            yield Finding("scheduler", Level.OK, "jobs run on this machine (no Slurm); set [compute] kind to change")
            return
        if shutil.which("sbatch", path=self.environ.get("PATH")) is None:
            advice = "load Slurm's module, or set [compute] kind to local; no pass can be made until then"
            yield Finding("scheduler", Level.FAIL, "[compute] kind is slurm, but sbatch is not on PATH", advice)
            return
        env = query_environment(self.environ)
        for program, argv in (
            ("sbatch", ["sbatch", "--version"]),
            ("squeue", ["squeue", "-h", "-u", "root", "-o", "%i"]),
            ("sacct", ["sacct", "-n", "-X", "-P", "-o", "JobID", "-S", "now-1minute"]),
        ):
            finished = self.run(argv, timeout=_TIMEOUT_S, env=env)
            if finished.ok:
                yield Finding(program, Level.OK, f"answered in {finished.seconds:.2f} s {finished.stdout[:40].strip()}")
            elif program == "sacct" and "disabled" in finished.stderr:
                saw = "accounting storage is disabled"
                yield Finding(program, Level.WARN, saw, "runs work; reports say 'not measured'")
            else:
                advice = "load Slurm's module, or ask the admins whether the controller is down"
                yield Finding(program, Level.FAIL, finished.complaint(), advice)

    def _containers(self) -> Iterator[Finding]:
        container = self.settings.container
        images = sorted({target.image for target in self.settings.targets.values()}) or [""]
        for image in images:
            try:
                runtime = choose(
                    container.runtime,
                    image=Path(image) if image else None,
                    uncontained=container.uncontained,
                    environ=self.environ,
                )
            except OuterloopError as error:
                yield Finding("container", Level.FAIL, str(error))
                continue
            level = Level.WARN if runtime.name == "none" else Level.OK
            advice = "benchmarks see this whole machine; install apptainer or bubblewrap" if level is Level.WARN else ""
            yield Finding("container", level, f"{runtime.name} {image}".rstrip(), advice)

    def _targets(self) -> Iterator[Finding]:
        if not self.settings.targets:
            yield Finding("targets", Level.WARN, "none is configured", "add [targets.NAME] to outerloop.toml")
        for name, target in self.settings.targets.items():
            try:
                ask(target.repository, target.branch, timeout_s=_TIMEOUT_S)
            except OuterloopError as error:
                advice = f"mend [targets.{name}] in outerloop.toml, or the access to it"
                yield Finding("targets", Level.FAIL, f"{name}: {error}", advice)
            else:
                yield Finding("targets", Level.OK, f"{name}: {target.repository} ({target.branch})")

    def _last_pass(self) -> Iterator[Finding]:
        """Say when a pass was last completed: a cron line that was wiped is noticed by nothing else."""
        path = self.layout.tick / "completed.json"
        try:
            said = json.loads(fsio.read(path))
            hours = (datetime.now(UTC) - datetime.fromisoformat(said["at"])).total_seconds() / 3600
        except FileNotFoundError:
            yield Finding("last pass", Level.WARN, "none yet", "run `outerloop-hpc tick`, then see slurm-templates/")
            return
        except (ValueError, KeyError, TypeError) as error:
            yield Finding("last pass", Level.WARN, f"{path}: {error}", "the next pass writes it anew")
            return
        late = hours > _LATE_HOURS
        advice = "if a tick should come by itself: is its cron, scrontab or timer entry still there?" if late else ""
        saw = f"completed at {said['at']} on {said.get('host', 'an unnamed host')}"
        yield Finding("last pass", Level.WARN if late else Level.OK, saw, advice)
