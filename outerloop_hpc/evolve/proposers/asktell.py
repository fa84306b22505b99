"""The ``ask-tell`` proposer: Optuna over declared parameters. The study is made anew each time from what was told."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from outerloop_hpc.engine.spec import digest_of
from outerloop_hpc.errors import ConfigError
from outerloop_hpc.evolve.given import Told
from outerloop_hpc.evolve.proposers.proposed import Draft, Occasion, Proposed
from outerloop_hpc.evolve.proposers.template import Choice, filled
from outerloop_hpc.evolve.work import AskTell, Parameter

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.study import Study

#: A space of few values is soon used up: how often the sampler is asked for one that was not there before.
_ASKED = 50


def propose(occasion: Occasion, proposer: AskTell) -> Proposed:
    """Ask for the next points, none of them twice in a sweep; the same generation gets the same ones again.

    Raises:
        ConfigError: Optuna is not installed, or what was told is not of these parameters.
    """
    given = occasion.given
    found: list[Draft] = []
    seed = int(digest_of(occasion.work.document, given.generation)[:8], 16)
    for values in points(proposer, given.told, seed, given.count):
        name = f"ask-tell[{given.generation}.{len(found)}]"
        found.append(Draft(name, partial(filled, proposer.template, values), values))
    return Proposed(tuple(found), exhausted=len(found) < given.count)


def points(proposer: AskTell, told: Sequence[Told], seed: int, count: int) -> list[dict[str, Choice]]:
    """Return at most ``count`` new points; fewer when the sampler knows no others.

    Args:
        proposer: parameters and sampler.
        told: earlier points and what they gained; those that gave nothing are only not asked for again.
        seed: of the sampler.
        count: how many are wanted.

    Raises:
        ConfigError: as for ``propose``.
    """
    with _quiet():
        study = _study(proposer, told, seed)
        known = [dict(one.values) for one in told]
        found: list[dict[str, Choice]] = []
        for values in _asked(study, distributions(proposer.parameters), count * _ASKED):
            if values not in known and values not in found:
                found.append(values)
            if len(found) == count:
                break
    return found


def check(proposer: AskTell) -> None:
    """Make sure that a search can be begun, before anything is submitted.

    Raises:
        ConfigError: Optuna is not installed, or bounds that it does not take.
    """
    with _quiet():
        distributions(proposer.parameters)


def distributions(parameters: Sequence[Parameter]) -> dict[str, BaseDistribution]:
    """Return each parameter in Optuna's words.

    Raises:
        ConfigError: Optuna is not installed, or bounds that it does not take.
    """
    from optuna import distributions as of  # noqa: PLC0415 - an extra, and slow to import

    found: dict[str, BaseDistribution] = {}
    for one in parameters:
        try:
            match one.kind:
                case "choice":
                    found[one.name] = of.CategoricalDistribution(one.choices)
                case "int":
                    found[one.name] = of.IntDistribution(int(one.low or 0), int(one.high or 0), log=one.log)
                case "float":
                    found[one.name] = of.FloatDistribution(float(one.low or 0), float(one.high or 0), log=one.log)
        except ValueError as error:
            raise ConfigError(f"the parameter {one.name!r} cannot be searched: {error}") from error
    return found


def _study(proposer: AskTell, told: Sequence[Told], seed: int) -> Study:
    import optuna  # noqa: PLC0415 - an extra, and slow to import

    sampler: optuna.samplers.BaseSampler
    if proposer.sampler == "random":
        sampler = optuna.samplers.RandomSampler(seed=seed)
    else:
        sampler = optuna.samplers.TPESampler(seed=seed)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    space = distributions(proposer.parameters)
    for one in told:
        if one.gain is None:
            continue
        try:
            trial = optuna.trial.create_trial(params=_typed(one, space), distributions=space, value=one.gain)
        except ValueError as error:
            raise ConfigError(f"what was told is not of this sweep's parameters: {error}") from error
        study.add_trial(trial)
    return study


def _typed(told: Told, space: Mapping[str, BaseDistribution]) -> dict[str, Choice]:
    """Return a point's values; JSON may have written a whole float as an integer."""
    from optuna.distributions import FloatDistribution  # noqa: PLC0415 - an extra, and slow to import

    return {
        name: float(value) if isinstance(space.get(name), FloatDistribution) else value
        for name, value in told.values.items()
    }


def _asked(study: Study, space: Mapping[str, BaseDistribution], most: int) -> Iterator[dict[str, Choice]]:
    for _ in range(most):
        yield dict(study.ask(dict(space)).params)


@contextmanager
def _quiet() -> Iterator[None]:
    """Let Optuna say nothing of its own; names the extra where it is not there."""
    try:
        from optuna import logging  # noqa: PLC0415 - an extra, and slow to import
    except ImportError as error:
        raise ConfigError(
            "the ask-tell proposer needs Optuna, which is not installed where this job runs; install "
            "outerloop-hpc[search] there, or use the grid proposer"
        ) from error
    before = logging.get_verbosity()
    logging.set_verbosity(logging.ERROR)
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        logging.set_verbosity(before)
