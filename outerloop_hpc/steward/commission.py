"""The specification of a steward run: everything that it rests on, resolved when its order is claimed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from outerloop_hpc.config.secret import read_secret
from outerloop_hpc.config.settings import Steward
from outerloop_hpc.engine.jobs import load_job
from outerloop_hpc.engine.ruler import seeds_of
from outerloop_hpc.engine.spec import RunSpec
from outerloop_hpc.engine.targets import Sighted, Targets
from outerloop_hpc.errors import ConfigError, Fault, UsageError
from outerloop_hpc.forge.markers import counts
from outerloop_hpc.forge.port import Forge, Order
from outerloop_hpc.measure import ledger, results
from outerloop_hpc.measure.command import split_command
from outerloop_hpc.measure.history import ledger_rows
from outerloop_hpc.steward.work import (
    COMMENT_SHOWN,
    COMMENTS_SHOWN,
    CONTRACT_SHOWN,
    KIND,
    ORDER_SHOWN,
    AgentWork,
    OrderComment,
    OrderText,
    StepAsk,
    StewardWork,
    Territories,
    claim_id,
    dump,
)
from outerloop_hpc.target.repository import NoSuchFile

_LEDGER = "results/leader.json"
#: Around a session in its job: preflight, clone, capture.
_ROOM_MINUTES = 15


def check_role(given: Steward) -> None:
    """Make sure that the steward's key and files are what they must be.

    Raises:
        ConfigError: they are not; the text says which.
    """
    if given.key_file:
        read_secret(Path(given.key_file))
    if given.files and not Path(given.files).is_dir():
        raise ConfigError(f"{given.files}: the folder of the steward's files is not there; see [steward] files")


def spec(targets: Targets, seen: Sighted, forge: Forge, order: Order, attempt: int, benchmark: str) -> RunSpec:
    """Make the specification of one attempt at an order, at the target's commit that was sighted.

    Raises:
        ConfigError: image, validation or job definitions are not what they must be; nothing is claimed then.
        Fault: the repository's ledger cannot be read.
        TryLater: the forge does not answer.
        OverBudget: the week is used up.
    """
    targets.check_week(KIND, seen)
    given, target = targets.settings.steward, targets.settings_of(seen.target)
    if target.validation:
        try:
            split_command(target.validation)
        except ConfigError as error:
            raise ConfigError(f"[targets.{seen.target}] validation: {error}") from None
    contract, scope = seen.loaded.contract, seen.loaded.contract.territories().steward()
    draft = targets.run_spec(KIND, seen, cause=f"order {order.order_id}", work={})
    chosen = next(one for one in contract.benchmarks if one.name == benchmark)
    others = [one for one in contract.benchmarks if one.name != benchmark]
    siblings = tuple(seen.ruler(one) for one in others)
    minutes = sum(one.eval_minutes for one in siblings) + (target.validation_minutes if target.validation else 0)
    ruler = seen.ruler(chosen)
    leader = _leader(targets, seen)
    known = _known(targets, seen.target, benchmark, leader)
    work = StewardWork(
        order=OrderText(
            order_id=order.order_id,
            title=order.title[:ORDER_SHOWN],
            body=order.body[: ORDER_SHOWN + 1],
            author=order.author[:200],
        ),
        comments=_comments(forge, order, given.authors),
        claim=claim_id(seen.target, draft.run),
        attempt=attempt,
        identity=forge.identity,
        onto=target.branch,
        tree=seen.tree,
        contract=seen.loaded.text[: CONTRACT_SHOWN + 1],
        contract_digest=seen.loaded.digest,
        ruler=ruler,
        siblings=siblings,
        seeds=seeds_of(given.seeds, draft.run, benchmark),
        validation=target.validation,
        validation_minutes=target.validation_minutes,
        territories=Territories(allowed=scope.allowed, forbidden=scope.forbidden),
        leader=leader,
        best=None if known is None else known.best,
        best_run="" if known is None else known.best_run,
        digits={one.name: one.display_digits or 6 for one in contract.benchmarks},
        agent=_agent(given, seen),
        session=_ask(targets, "session", seen.allowed.session_minutes + _ROOM_MINUTES, network=given.network),
        validate=_ask(targets, "validate", max(minutes, 1), gpus=max((one.gpus for one in others), default=0)),
        measure=_ask(targets, "measure", ruler.eval_minutes, gpus=chosen.gpus),
    )
    return draft.model_copy(update={"work": dump(work)})


def _comments(forge: Forge, order: Order, authors: Sequence[str]) -> tuple[OrderComment, ...]:
    said = [one for one in forge.comments(order.order_id) if counts(one, forge.identity, authors)]
    return tuple(
        OrderComment(author=one.author[:200], body=one.body[: COMMENT_SHOWN + 1]) for one in said[-COMMENTS_SHOWN:]
    )


def _agent(given: Steward, seen: Sighted) -> AgentWork:
    return AgentWork(
        command=given.command,
        files=given.files,
        key_file=given.key_file,
        key_env=given.key_env,
        turns=seen.allowed.session_max_turns,
        minutes=seen.allowed.session_minutes,
    )


def _ask(targets: Targets, job: str, minutes: int, *, gpus: int = 0, network: bool | None = None) -> StepAsk:
    definition = load_job(targets.layout, job)
    return StepAsk(
        resources=definition.ask(minutes=minutes, gpus=gpus, parallel=0),
        max_tries=min(definition.max_tries, targets.settings.reconcile.max_tries),
        min_free_gb=definition.min_free_gb,
        containment=targets.containment(network=definition.network if network is None else network),
    )


def _known(targets: Targets, target: str, benchmark: str, leader: str) -> ledger.Row | None:
    """Return the benchmark's row in the repository's ledger, or else in the one of what was measured here."""
    there = ledger.decode(leader.encode(), _LEDGER) if leader else {}
    here = ledger_rows(results.points(targets.layout.results, target, benchmark))
    return there.get(benchmark) or here.get(benchmark)


def _leader(targets: Targets, seen: Sighted) -> str:
    """Return the repository's ledger, empty when it has none; one that cannot be read could not be written either."""
    try:
        data = targets.mirror(seen.target).read(seen.commit, _LEDGER)
    except NoSuchFile:
        return ""
    except UsageError as error:
        raise Fault(
            f"{seen.target}: its ledger cannot be read, and writing it would drop every row: {error}"
        ) from error
    ledger.decode(data, f"{seen.target}: {_LEDGER} at {seen.commit[:12]}")
    return data.decode()
