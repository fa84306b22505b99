"""Hostile texts go through the whole lane, in every place that takes text, with no effect but themselves.

Some texts share an order, so that this takes a minute and not ten. What keeps them in is tried with each alone, too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from outerloop_hpc.engine.plain import plain
from outerloop_hpc.forge.markers import read, standing
from outerloop_hpc.forge.text import fenced, span
from tests.local.driver import Driver
from tests.local.scratch import contents, git
from tests.local.site import environment, wait_for
from tests.local.steward.hostile import TEXTS
from tests.local.steward.lane import Lane, new_lane
from tests.local.steward.markdown import code, masked, outline, unseen

pytestmark = [pytest.mark.local, pytest.mark.timeout(1200)]

Pack = tuple[str, ...]
#: What a forge takes; GitHub's limit is 65,536 characters.
MOST = 60_000
#: How the speaker ends: by the number of the order, modulo four; order 1 is the second.
WAYS = ("answered", "out-of-scope", "no validation", "no number")
ENDINGS = ("answered", "out-of-scope", "invalid", "invalid")
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,120}")
_REF = re.compile(r"refs/(heads|outerloop)/[A-Za-z0-9_./-]{1,200}")
_SPEAKER = Path(__file__).with_name("speaker.py")

CONTRACT = f"""\
# {TEXTS["a release"]} @ada
guidance: {json.dumps(" ".join(text[:120] for text in TEXTS.values() if not unseen(text)))}
benchmarks:
  - {{name: score, command: python3 evaluate.py, metric: score, direction: max, seed_env: SEED, eval_minutes: 1}}
  - {{name: other, command: python3 other.py, metric: other, direction: max, eval_minutes: 1}}
budgets: {{gpu_hours_per_run: 0, runs_per_week: 1000}}
scope: {{allowed: [solver.py]}}
steward: {{allowed: [evaluate.py, checks]}}
"""


def packs(count: int) -> list[Pack]:
    """Return all texts in so many packs, the largest texts last in theirs."""
    texts = sorted(TEXTS.values(), key=len)
    return [tuple(texts[number::count]) for number in range(count)]


@dataclass(frozen=True)
class Told:
    """A lane in which every pack was ordered, after as many harmless ones as there are ways to end."""

    lane: Lane
    packs: Sequence[Pack]
    plain: int
    before: dict[str, bytes]

    def orders(self) -> list[str]:
        return [str(number + 1) for number in range(len(self.packs))]

    def harmless(self, order: str) -> str:
        """Return the harmless order that ends in the same way."""
        return str((int(order) - 1) % self.plain + 1)

    def tool_comments(self, order: str) -> list[str]:
        return [one.body for one in self.lane.comments(order) if one.author == "outerloop"]

    def reports(self) -> dict[str, str]:
        """Return every steward run's report by its order."""
        return {self._order(folder): (folder / "report.md").read_text("utf-8") for folder in self.lane.stewards()}

    def bodies(self) -> dict[str, str]:
        """Return title and body of every change by its order."""
        opened = [self.lane.forge.opening(change.change_id) for change in self.lane.changes()]
        return {one.order: f"# {one.title}\n\n{one.body}" for one in opened}

    def endings(self) -> dict[str, str]:
        return dict(zip(map(self._order, self.lane.stewards()), self.lane.endings(), strict=True))

    @staticmethod
    def _order(folder: Path) -> str:
        order: str = json.loads((folder / "spec.json").read_bytes())["work"]["order"]["order_id"]
        return order


def told(root: Path, driver: Driver, hostile: Sequence[Pack], ways: Sequence[str]) -> Told:
    """Order every pack, as somebody of that name, and comment with it."""
    every = [*([("a word",)] * len(ways)), *hostile]
    (root / "canary").mkdir()
    (root / "canary" / "file").write_text("as it was", encoding="utf-8")
    lane = new_lane(
        root,
        driver=driver,
        steward={"live": len(every), "seeds": 1, "attempts": 1},
        validation="python3 checks/validate.py",
        contract=CONTRACT,
    )
    lane.site.extend("[limits]\nlive_runs = 1000\n")
    (root / "texts.json").write_text(json.dumps(every), encoding="utf-8")
    given = f"TEXTS = {str(root / 'texts.json')!r}\nWAYS = {list(ways)!r}\n"
    lane.script(given + _SPEAKER.read_text(encoding="utf-8"))
    for pack in every:
        text = "\n\n".join(pack)
        author = pack[0][:200].strip()
        title = " ".join(one[:1000] for one in pack)
        order = lane.order(title=title, body=f"{text}\n\nbenchmark: score\n", author=author)
        lane.forge.say(order, author=author, body=text)
        for one in pack:
            lane.forge.say(order, author="eve", body=one)
    return Told(lane, every, len(ways), around(root))


def until_ended(made: Told) -> None:
    """Tick until every run has ended; there are many of them, so it may take long on a busy machine."""

    def over() -> bool:
        made.lane.tick()
        live = [name for name in made.lane.site.live() if name.startswith("steward-")]
        return len(made.lane.stewards()) >= len(made.packs) and not live

    wait_for(over, "every run has ended", 250)


def around(root: Path) -> dict[str, bytes]:
    """Return every file beside the state folder."""
    skipped = ("site/state/", "diary")
    return {name: data for name, data in contents(root).items() if not name.startswith(skipped)}


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    with Driver(tmp_path_factory.mktemp("driver"), environment()) as running:
        yield running


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory, driver: Driver) -> Iterator[Told]:
    """Runs that end well; people close their changes with the text."""
    made = told(tmp_path_factory.mktemp("published"), driver, packs(12), ("done",))
    lane = made.lane
    try:

        def all_open() -> bool:
            lane.tick()
            return len(lane.changes()) + sum(map(bool, lane.endings())) >= len(made.packs)

        wait_for(all_open, "every change is open", 300)
        lane.tick()
        for change in lane.changes():
            order = lane.forge.opening(change.change_id).order
            text = "\n\n".join(made.packs[int(order) - 1])
            lane.forge.say(order, author="eve", body=text)
            lane.forge.close_change(change.change_id, author="eve", body=text)
        until_ended(made)
        yield made
    finally:
        lane.site.stop_jobs()


@pytest.fixture(scope="module")
def amiss(tmp_path_factory: pytest.TempPathFactory, driver: Driver) -> Iterator[Told]:
    """Runs of which nothing is proposed."""
    made = told(tmp_path_factory.mktemp("amiss"), driver, packs(8), WAYS)
    try:
        until_ended(made)
        made.lane.tick()
        yield made
    finally:
        made.lane.site.stop_jobs()


@pytest.fixture(scope="module", params=["published", "amiss"])
def story(request: pytest.FixtureRequest) -> Told:
    found: Told = request.getfixturevalue(request.param)
    return found


def test_there_are_enough_of_them() -> None:
    assert len(set(TEXTS.values())) >= 40


@pytest.mark.parametrize("name", TEXTS)
def test_each_text_alone_stays_in_its_fence_and_its_span(name: str) -> None:
    text = TEXTS[name]
    assert outline(f"before\n\n{fenced(text)}\n\nafter") == outline("before\n\n```\nx\n```\n\nafter")
    for around in ("a {} b", "**x** {}", "- {}: {}", "| {} | y |\n|---|---|\n| z | {} |"):
        assert outline(around.replace("{}", span(text))) == outline(around.replace("{}", "`x`"))
    for way in (fenced, span):
        assert read(way(text)) is None
        assert unseen(way(text)) == set()
        assert len(way(text)) < MOST


@pytest.mark.parametrize("name", TEXTS)
def test_each_text_alone_is_plain_in_a_cell(name: str) -> None:
    built = [line.split(" ")[0] for line in outline(f"| {plain(TEXTS[name])} | y |\n|---|---|\n")]
    table = outline("| x | y |\n|---|---|\n")
    assert {*built} - {*(line.split(" ")[0] for line in table)} <= {
        "em_open",
        "em_close",
        "strong_open",
        "strong_close",
    }
    assert not set("@[<`") & set(plain(TEXTS[name]))


def test_no_text_changes_how_a_run_ends_or_buys_anything_twice(story: Told) -> None:
    endings = story.endings()
    assert {order: endings[story.harmless(order)] for order in story.orders()} == endings
    assert len(story.lane.stewards()) == len(story.lane.sessions()) == len(story.packs)
    published = [order for order, ending in endings.items() if ending == "rejected"]
    assert len(story.lane.changes()) == len(published)
    assert set(endings.values()) == ({"rejected"} if story.plain == 1 else set(ENDINGS))


def test_only_the_tools_own_markers_are_read_back(story: Told) -> None:
    claims = {json.loads((f / "spec.json").read_bytes())["work"]["claim"] for f in story.lane.stewards()}
    for order in story.orders():
        comments, quiet = story.lane.comments(order), story.lane.comments(story.harmless(order))
        found = [marker for one in comments if one.author == "outerloop" and (marker := read(one.body)) is not None]
        assert {marker.claim for marker in found} <= claims
        assert len({marker.claim for marker in found}) == 1
        now, expected = standing(comments, "outerloop"), standing(quiet, "outerloop")
        assert masked(now.model_dump_json(exclude={"since"})) == masked(expected.model_dump_json(exclude={"since"}))


def test_outside_of_code_every_post_is_the_tools_own_words(story: Told) -> None:
    bodies = story.bodies()
    for order in story.orders():
        quiet = story.harmless(order)
        mine, expected = story.tool_comments(order), story.tool_comments(quiet)
        assert len(mine) == len(expected)
        for text, other in zip(mine, expected, strict=True):
            assert outline(text) == outline(other)
        if order in bodies:
            assert outline(bodies[order]) == outline(bodies[quiet])
    assert set(bodies) in (set(), set(story.orders()))


def test_outside_of_code_every_report_is_the_tools_own_words(story: Told) -> None:
    reports = story.reports()
    for order in story.orders():
        assert outline(reports[order]) == outline(reports[story.harmless(order)])


def test_a_brief_has_rules_of_its_own_only(story: Told) -> None:
    said = [session["brief"] for session in story.lane.sessions()]
    briefs = {re.findall(r"^## The order \((\d+)", brief, re.MULTILINE)[0]: brief for brief in said}
    for order in story.orders():
        assert said_once(outline(briefs[order])) == said_once(outline(briefs[story.harmless(order)]))
        assert len(briefs[order]) < MOST


def said_once(built: list[str]) -> list[str]:
    """Return a brief's outline with one comment of however many there are, all built in the same way."""
    start = next(at for at, line in enumerate(built) if line.endswith("What people said on it")) + 2
    end = next(at for at, line in enumerate(built) if line.endswith("The contract")) - 1
    block = built[start:end]
    size = block.index("fence") + 1
    assert block == block[:size] * (len(block) // size)
    return [*built[:start], *block[:size], *built[end:]]


def test_what_is_posted_is_capped_and_wholly_visible(story: Told) -> None:
    posted = [text for order in story.orders() for text in story.tool_comments(order)]
    for text in [*posted, *story.bodies().values(), *story.reports().values()]:
        assert len(text) < MOST
        assert unseen(text) == set()


def test_a_session_is_quoted_as_it_spoke(published: Told) -> None:
    for order in published.orders():
        first = published.packs[int(order) - 1][0]
        if not unseen(first) and "\r" not in first:
            assert any(first.strip() in block for block in code(published.bodies()[order]))


def test_no_name_on_disk_or_in_git_comes_from_a_text(story: Told) -> None:
    state = story.lane.site.state
    for path in state.rglob("*"):
        assert _NAME.fullmatch(path.name), path
    for repository in [*state.glob("mirrors/*.git"), *state.glob("forge/*/repository.git")]:
        for ref in git(repository, "for-each-ref", "--format=%(refname)").splitlines():
            assert _REF.fullmatch(ref)
        subjects = git(repository, "log", "--all", "--format=%an %ae %B").splitlines()
        assert {masked(line) for line in subjects} <= COMMIT_LINES


COMMIT_LINES = {
    "",
    "A Ü a@x work",
    "outerloop noreply@localhost Re-base score",
    "outerloop noreply@localhost score: a new ruler",
    "By a session of RUN.",
    "Measured by RUN at tree N.",
}


def test_nothing_beside_the_state_folder_is_touched(story: Told) -> None:
    assert around(story.lane.site.root.parent) == story.before
