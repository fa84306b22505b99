"""Where steward runs come from: the oldest order on a target's forge that can be taken now."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

from outerloop_hpc import fsio
from outerloop_hpc.config.secret import read_secret
from outerloop_hpc.documents import load
from outerloop_hpc.engine import runs
from outerloop_hpc.engine.changes import Forges
from outerloop_hpc.engine.claims import ended_path
from outerloop_hpc.engine.jobs import load_job
from outerloop_hpc.engine.lane import Order, Remark, Trouble
from outerloop_hpc.engine.layout import parse_run_id
from outerloop_hpc.engine.ruler import seeds_of
from outerloop_hpc.engine.spec import ResourceAsk, RunSpec
from outerloop_hpc.engine.targets import Sighted, Targets
from outerloop_hpc.errors import ConfigError, Fault, OuterloopError, TryLater, UsageError
from outerloop_hpc.forge import port
from outerloop_hpc.forge.markers import Standing
from outerloop_hpc.measure import ledger
from outerloop_hpc.steward.ending import RoleOutage
from outerloop_hpc.steward.orders import OrderBook
from outerloop_hpc.steward.qualify import Decline, Pass, Rules, Take, qualify
from outerloop_hpc.steward.work import (
    CONTRACT_SHOWN,
    KIND,
    ORDER_SHOWN,
    ROLE,
    AgentWork,
    OrderText,
    StepAsk,
    StewardWork,
    Territories,
    claim_id,
    dump,
    order_key,
)
from outerloop_hpc.target.terms import Benchmark

_log = logging.getLogger(__name__)

#: A refusal by a clock that is ahead still counts; one from further in the future is somebody's mistake.
_SKEW = timedelta(minutes=5)
_LEDGER = "results/leader.json"
_ROOM_MINUTES = 15


class StewardLane:
    """Takes orders, oldest first, while the role can work and the target has room."""

    name = KIND

    def __init__(self, targets: Targets, forges: Forges) -> None:
        self._targets, self._forges = targets, forges
        self.settings, self.layout = targets.settings, targets.layout

    def targets(self) -> Sequence[str]:
        """Return every configured target; none without a steward's command."""
        return self._targets.names if self.settings.steward.command else ()

    def orders(self, target: str) -> Iterator[Order | Remark | Trouble]:
        """Yield the orders that can be taken, and what is to be said on those that cannot."""
        forge = self._forges(target)
        if forge is None:
            return
        if not forge.identity:
            raise ConfigError(f"{target}: the forge's identity is empty; no order is looked at, or none would seem held")
        seen = self._targets.look(target)
        if seen.loaded.contract.steward is None:
            _log.info("%s: its contract has no steward section; no order is taken", target)
            return
        if until := self._paused():
            _log.info("%s: the %s role pauses until %s", target, ROLE, until)
            return
        yield from self._judged(forge, seen)

    def _judged(self, forge: port.Forge, seen: Sighted) -> Iterator[Order | Remark | Trouble]:
        given, target = self.settings.steward, seen.target
        rules = Rules(forge.identity, given.authors, given.attempts, given.outages)
        names = [benchmark.name for benchmark in seen.loaded.contract.benchmarks]
        now = self._targets.clock.now()
        with OrderBook.open(self.layout.tick / f"orders-{target}.json", forge, given.authors, now) as book:
            for order in forge.orders(given.label):
                if self._live(target) >= given.live:
                    return
                try:
                    standing = book.standing(order)
                except TryLater:
                    raise
                except OuterloopError as error:
                    yield Trouble(target, f"order {order.order_id}", error)
                    continue
                match qualify(order, standing, names, rules, now):
                    case Take(benchmark):
                        yield self._order(seen, forge, order, standing, seen.loaded.contract.benchmark(benchmark))
                    case Decline(key, text, reason):
                        yield Remark(target, order.order_id, f"{ROLE}/{key}", text, reason)
                    case Pass(reason):
                        _log.info("%s: order %s: %s", target, order.order_id, reason)

    def _order(
        self, seen: Sighted, forge: port.Forge, order: port.Order, standing: Standing, benchmark: Benchmark
    ) -> Order:
        attempt = self._attempt(seen.target, order.order_id, standing)

        def make() -> RunSpec:
            return self._spec(seen, forge, order, attempt, benchmark)

        why = f"order {order.order_id} on {benchmark.name}, attempt {attempt}"
        return Order(seen.target, order_key(order.order_id, attempt), why, make)

    def _attempt(self, target: str, order_id: str, standing: Standing) -> int:
        """Number the next attempt. A claim that ended before it could be told on the order is counted too."""
        attempt = standing.attempts + 1
        while (self.layout.root / ended_path(target, order_key(order_id, attempt))).exists():
            attempt += 1
        return attempt

    def _live(self, target: str) -> int:
        """Count the steward runs of a target that are live or in the making, by their names."""
        count = 0
        for name in {*runs.live(self.layout), *runs.unmade(self.layout)}:
            with suppress(UsageError):
                parsed = parse_run_id(name)
                count += (parsed.kind, parsed.target) == (KIND, target)
        return count

    def _paused(self) -> datetime | None:
        """Say until when the role pauses. What cannot be read pauses nothing: a session would find out by itself."""
        given, now = self.settings.steward, self._targets.clock.now()
        minutes = {"refused": given.outage_minutes, "throttled": given.throttle_minutes}
        folder, until = self.layout.outages / ROLE, None
        for name in fsio.names(folder):
            try:
                outage: RoleOutage = load(RoleOutage, folder / name)
            except (Fault, FileNotFoundError) as fault:
                _log.warning("%s: %s", folder / name, fault)
                continue
            end = outage.at + timedelta(minutes=minutes[outage.outage])
            if outage.at <= now + _SKEW and end > now:
                until = max(until or end, end)
        return until

    def _spec(
        self, seen: Sighted, forge: port.Forge, order: port.Order, attempt: int, benchmark: Benchmark
    ) -> RunSpec:
        """Make the specification of one run.

        Raises:
            ConfigError: key, files, image or job definitions are not what they must be; nothing is claimed then.
            Fault: the repository's ledger cannot be read.
            OverBudget: the week is used up.
        """
        self._targets.check_week(KIND, seen)
        given, target = self.settings.steward, self._targets.settings_of(seen.target)
        draft = self._targets.run_spec(KIND, seen, cause=f"order {order.order_id}", work={})
        contract, scope = seen.loaded.contract, seen.loaded.contract.territories().steward()
        ruler = seen.ruler(benchmark)
        siblings = tuple(seen.ruler(one) for one in contract.benchmarks if one.name != benchmark.name)
        minutes = sum(one.eval_minutes for one in siblings) + (target.validation_minutes if target.validation else 0)
        work = StewardWork(
            order=OrderText(
                order_id=order.order_id,
                title=order.title[:ORDER_SHOWN],
                body=order.body[: ORDER_SHOWN + 1],
                author=order.author[:200],
            ),
            claim=claim_id(seen.target, draft.run),
            attempt=attempt,
            identity=forge.identity,
            onto=target.branch,
            tree=seen.tree,
            contract=seen.loaded.text[: CONTRACT_SHOWN + 1],
            contract_digest=seen.loaded.digest,
            ruler=ruler,
            siblings=siblings,
            seeds=seeds_of(given.seeds, draft.run, benchmark.name),
            validation=target.validation,
            validation_minutes=target.validation_minutes,
            territories=Territories(allowed=scope.allowed, forbidden=scope.forbidden),
            leader=self._leader(seen),
            digits={one.name: one.display_digits or 6 for one in contract.benchmarks},
            agent=self._agent(seen),
            session=self._ask("session", seen.allowed.session_minutes + _ROOM_MINUTES, network=given.network),
            validate=self._ask("validate", max(minutes, 1)),
            measure=self._ask("measure", ruler.eval_minutes, gpus=benchmark.gpus),
        )
        return draft.model_copy(update={"work": dump(work)})

    def _agent(self, seen: Sighted) -> AgentWork:
        """Check what a session needs before an order is claimed for it."""
        given = self.settings.steward
        if given.key_file:
            if not given.key_env:
                raise ConfigError("[steward] key_file is set, and key_env is not: the session could not find its key")
            read_secret(Path(given.key_file))
        if given.files and not Path(given.files).is_dir():
            raise ConfigError(f"{given.files}: the folder of the steward's files is not there; see [steward] files")
        return AgentWork(
            command=given.command,
            files=given.files,
            key_file=given.key_file,
            key_env=given.key_env,
            turns=seen.allowed.session_max_turns,
            minutes=seen.allowed.session_minutes,
        )

    def _ask(self, job: str, minutes: int, *, gpus: int = 0, network: bool | None = None) -> StepAsk:
        definition = load_job(self.layout, job)
        reachable = definition.network if network is None else network
        return StepAsk(
            resources=_resources(definition.ask(minutes=minutes, gpus=gpus, parallel=0)),
            max_tries=min(definition.max_tries, self.settings.reconcile.max_tries),
            containment=self._targets.containment(network=reachable),
        )

    def _leader(self, seen: Sighted) -> str:
        """Return the repository's ledger; raises Fault when it cannot be read, since it could not be written either."""
        try:
            data = self._targets.mirror(seen.target).read(seen.commit, _LEDGER)
        except UsageError:
            return ""
        ledger.decode(data, f"{_LEDGER} at {seen.commit[:12]}")
        return data.decode()


def _resources(ask: ResourceAsk) -> ResourceAsk:
    return ask


Make = Callable[[], RunSpec]
