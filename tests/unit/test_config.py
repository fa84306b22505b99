"""Layers, origins, relative paths, and what is said about mistakes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from outerloop_hpc.config.keys import SECTIONS, resolved
from outerloop_hpc.config.ownership import OWNED_OPTIONS, refused_option
from outerloop_hpc.config.secret import read_secret
from outerloop_hpc.config.settings import NAMED_OPTIONS, Agent, Settings, State, Steward
from outerloop_hpc.config.sources import BUILT_IN, COMMAND_LINE, Loaded, as_rows, load
from outerloop_hpc.errors import ConfigError

pytestmark = pytest.mark.unit


class Place:
    """A made-up machine: home, site file, project folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home = root / "home dir"
        self.project = root / "project"
        self.cwd = self.project / "a" / "b"
        self.site = root / "etc" / "config.toml"
        self.user = self.home / ".config" / "outerloop-hpc" / "config.toml"
        for folder in (self.home, self.cwd, self.site.parent, self.user.parent):
            folder.mkdir(parents=True)

    def load(self, *, config: Path | None = None, overrides: dict[str, object] | None = None, **env: str) -> Loaded:
        return load(self.cwd, {"HOME": str(self.home), **env}, overrides, config=config, site=self.site)

    def load_with(self, variable: str, value: str) -> Loaded:
        return load(self.cwd, {"HOME": str(self.home), variable: value}, site=self.site)

    def write(self, text: str, path: Path | None = None) -> Path:
        path = path or self.project / "outerloop.toml"
        path.write_text(text, encoding="utf-8")
        return path


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_without_any_file_everything_is_built_in(place: Place) -> None:
    loaded = place.load()
    assert loaded.settings == Settings(state=State(root=place.home / ".local/state/outerloop-hpc"))
    assert loaded.files == ()
    assert {row.origin for row in as_rows(loaded)} == {BUILT_IN}


def test_each_layer_wins_over_the_ones_before_it(place: Place) -> None:
    place.write(
        '[slurm]\naccount = "site"\npartition = "site"\nqos = "site"\ncluster = "site"\ntimeout_s = 1\n', place.site
    )
    place.write('[slurm]\npartition = "user"\nqos = "user"\ncluster = "user"\ntimeout_s = 2\n', place.user)
    project = place.write('[slurm]\nqos = "project"\ncluster = "project"\ntimeout_s = 3\n')
    loaded = place.load(
        OUTERLOOP_SLURM__CLUSTER="env", OUTERLOOP_SLURM__TIMEOUT_S="4", overrides={"slurm.timeout_s": 5}
    )
    slurm = loaded.settings.slurm
    assert (slurm.account, slurm.partition, slurm.qos, slurm.cluster, slurm.timeout_s) == (
        "site",
        "user",
        "project",
        "env",
        5,
    )
    keys = ("account", "partition", "qos", "cluster", "timeout_s", "wake")
    assert [loaded.origin(f"slurm.{key}") for key in keys] == [
        str(place.site),
        str(place.user),
        str(project),
        "OUTERLOOP_SLURM__CLUSTER",
        COMMAND_LINE,
        BUILT_IN,
    ]
    assert loaded.files == (place.site, place.user, project)


def test_rows_say_key_value_and_origin(place: Place) -> None:
    project = place.write('[targets."a.b"]\nrepository = "."\nbenchmarks = ["x"]\n[slurm.options]\ncomment = "c d"\n')
    rows = {row.key: (row.value, row.origin) for row in as_rows(place.load())}
    assert rows["targets.a.b.benchmarks"] == (["x"], str(project))
    assert rows["targets.a.b.branch"] == ("main", BUILT_IN)
    assert rows["slurm.options.comment"] == ("c d", str(project))
    assert rows["reconcile.soft_window_s"] == (150, BUILT_IN)


def test_paths_are_relative_to_the_file_that_says_them(place: Place) -> None:
    place.write('[state]\nroot = "../shared state"\n', place.site)
    place.write(
        '[slurm]\npython = "venv/bin/python"\n[container]\nscratch = "$TMPDIR/x"\n'
        '[targets.a]\nrepository = "repo"\nimage = "~/image.sif"\n'
        '[targets.b]\nrepository = "git@host.example:group/b.git"\nimage = "docker://python:3"\n'
        '[targets.c]\nrepository = "https://host.example/c.git"\n'
    )
    settings = place.load().settings
    assert settings.state.root == place.site.parent.parent / "shared state"
    assert settings.slurm.python == f"{place.project}/venv/bin/python"
    assert settings.container.scratch == "$TMPDIR/x"
    assert settings.targets["a"].repository == f"{place.project}/repo"
    assert settings.targets["a"].image == f"{place.home}/image.sif"
    assert settings.targets["b"].repository == "git@host.example:group/b.git"
    assert settings.targets["b"].image == "docker://python:3"
    assert settings.targets["c"].repository == "https://host.example/c.git"
    assert place.load(OUTERLOOP_STATE__ROOT="here").settings.state.root == place.cwd / "here"


def test_one_site_file_can_name_a_folder_for_each_user(place: Place) -> None:
    place.write('[state]\nroot = "/scratch/${USER}/$GROUP/a$$b"\n', place.site)
    assert place.load(USER="ann", GROUP="g").settings.state.root == Path("/scratch/ann/g/a$b")
    with pytest.raises(ConfigError, match=r"config\.toml: state\.root: \$GROUP is not set here"):
        place.load(USER="ann")


def test_user_is_known_under_cron_too(place: Place) -> None:
    place.write('[state]\nroot = "/scratch/$USER"\n', place.site)
    root = place.load().settings.state.root
    assert root.parent == Path("/scratch")
    assert "$" not in root.name


def test_a_home_of_nobody_is_a_mistake_with_its_origin(place: Place) -> None:
    with pytest.raises(
        ConfigError, match=r"^OUTERLOOP_STATE__ROOT: state\.root: there is no home folder for '~no-such"
    ):
        place.load(OUTERLOOP_STATE__ROOT="~no-such-user/x")


def test_a_file_that_cannot_be_looked_at_is_not_passed_over(place: Place) -> None:
    with pytest.raises(ConfigError, match=r"config\.toml: cannot be looked at: File name too long"):
        place.load(XDG_CONFIG_HOME="/" + "x" * 300)


def test_a_key_below_what_another_file_calls_a_value(place: Place) -> None:
    place.write("[slurm]\noptions = 3\n", place.site)
    with pytest.raises(
        ConfigError, match=r"OUTERLOOP_SLURM__OPTIONS__NICE: slurm\.options\.nice: 'options' is a value"
    ):
        place.load(OUTERLOOP_SLURM__OPTIONS__NICE="3")


def test_a_bare_python_stays_a_name(place: Place) -> None:
    place.write('[slurm]\npython = "python3.12"\n')
    assert place.load().settings.slurm.python == "python3.12"


def test_the_named_project_file_stops_the_search(place: Place, tmp_path: Path) -> None:
    place.write('[slurm]\naccount = "found"\n')
    other = place.write('[slurm]\naccount = "named"\n', tmp_path / "other name.toml")
    third = place.write('[slurm]\naccount = "flag"\n', tmp_path / "third.toml")
    assert place.load(OUTERLOOP_CONFIG=str(other)).settings.slurm.account == "named"
    assert place.load(OUTERLOOP_CONFIG=str(other), config=third).settings.slurm.account == "flag"
    with pytest.raises(ConfigError, match=r"missing\.toml: named by OUTERLOOP_CONFIG and cannot be read: No such"):
        place.load(OUTERLOOP_CONFIG="missing.toml")


def test_xdg_folders_are_honoured_and_relative_ones_ignored(place: Place, tmp_path: Path) -> None:
    folder = tmp_path / "xdg" / "outerloop-hpc"
    folder.mkdir(parents=True)
    place.write('[slurm]\naccount = "xdg"\n', folder / "config.toml")
    loaded = place.load(XDG_CONFIG_HOME=str(tmp_path / "xdg"), XDG_STATE_HOME="not/absolute")
    assert loaded.settings.slurm.account == "xdg"
    assert loaded.settings.state.root == place.home / ".local/state/outerloop-hpc"


def test_without_home_under_cron_the_account_database_answers(place: Place) -> None:
    assert load(place.cwd, {}, site=place.site).settings.state.root.is_absolute()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('[slurm]\nacount = "x"', "slurm.acount: no such key in [slurm]; did you mean slurm.account?"),
        ('[slurmm]\naccount = "x"', "slurmm.account: there is no section [slurmm]; did you mean slurm?"),
        ("[slurmm]", "slurmm: there is no section [slurmm]; did you mean slurm?"),
        ('[limits]\naccount = "x"', "limits.account: no such key in [limits]; did you mean slurm.account?"),
        ('root = "x"', "root: there is no section [root]"),
        ("slurm = 3", "slurm: [slurm] is a section and cannot be a value"),
        ("[bench]\nzzz = 3", "bench.zzz: no such key in [bench]; known: every_hours, parallel, seeds"),
        ("[bench.seeds]\nx = 3", "bench.seeds.x: bench.seeds is a value and has no keys"),
        ('[targets.a]\nrepo = "x"', "targets.a.repo: no such key in [targets.a]; did you mean repository?"),
        ("[targets.a]", "targets.a: targets are tables"),
        ("targets = 3", "targets: targets are tables"),
        ('[slurm]\ntoken = "x"', "secrets are paths to files of mode 0600, never values"),
        ('[limits]\nlive_runs = "4"', "limits.live_runs: Input should be a valid integer (given: '4')"),
        ("[limits]\nlive_runs = true", "limits.live_runs: Input should be a valid integer (given: True)"),
        ("[limits]\nlive_runs = 0", "limits.live_runs: Input should be greater than or equal to 1"),
        ("[limits]\ngpu_hours_per_run = nan", "limits.gpu_hours_per_run: Input should be"),
        ("[slurm]\nwake = 1", "slurm.wake: Input should be a valid boolean"),
        ('[compute]\nkind = "slrum"', "compute.kind: Input should be 'auto', 'slurm' or 'local' (given: 'slrum')"),
        ('[slurm]\naccount = "a b"', "slurm.account: String should match pattern"),
        ('[slurm]\naccount = "--uid=0"', "slurm.account: String should match pattern"),
        ('[slurm]\naccount = "a\\n"', "slurm.account: String should match pattern"),
        ('[state]\nroot = "/x\\u0000y"', "state.root: must be one line of printable characters"),
        ('[state]\nroot = "https://x/y"', "state.root: must be an absolute path"),
        ('[state]\nroot = "/s/100%j"', "state.root: must hold no backslash and none of %j"),
        ("[state]\nroot = '/s\\x'", "state.root: must hold no backslash"),
        ("[state]\nroot = 3", "state.root: Input is not a valid path"),
        ('[slurm]\npython = "/x\\n/y"', "slurm.python: must be one line of printable characters"),
        ('[slurm.options]\nsignal = "USR1@10"', "slurm.options: 'signal' cannot be set here"),
        ('[slurm.options]\n"--nice" = 1', "slurm.options: '--nice' is not a long sbatch option"),
        ('[slurm.options]\ncomment = "a\\nb"', "slurm.options: must be one line of printable characters"),
        ("[slurm.options]\nnice = 1.5", "slurm.options: nice: must be text, a whole number, true or false"),
        ("[targets.a]\nbranch = 'main'", "targets.a.repository: Field required"),
        ("[targets.'a/b']\nrepository = 'x'", "targets.a/b: String should match pattern"),
        ("[targets.a]\nrepository = 'x'\nbenchmarks = ['']", "targets.a.benchmarks.0: String should match pattern"),
        ("[targets.a]\nrepository = 'x'\nbranch = '-b'", "targets.a.branch: String should match pattern"),
        ("[slurm", "not TOML"),
        ("[slurm]\nqos = 1\nqos = 2", "not TOML"),
    ],
)
def test_a_mistake_is_told_with_file_and_key(place: Place, text: str, complaint: str) -> None:
    path = place.write(text)
    with pytest.raises(ConfigError) as caught:
        place.load()
    assert complaint in str(caught.value)
    assert str(caught.value).startswith(f"{path}: ")


def test_all_mistakes_are_told_at_once_each_with_its_own_origin(place: Place) -> None:
    site = place.write("[limits]\nlive_runs = 0\n", place.site)
    with pytest.raises(ConfigError) as caught:
        place.load(OUTERLOOP_BENCH__SEEDS="many")
    first, second = str(caught.value).splitlines()
    assert first.startswith(f"{site}: limits.live_runs: ")
    assert second == ("OUTERLOOP_BENCH__SEEDS: bench.seeds: Input should be a valid integer (given: 'many')")


def test_files_that_are_not_text_or_not_readable_are_named(place: Place) -> None:
    path = place.project / "outerloop.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match=r"outerloop\.toml: not TOML"):
        place.load()
    path.unlink()
    path.mkdir()  # a folder of that name is not the project file
    assert place.load().files == ()


def test_a_found_file_that_anybody_can_write_is_refused(place: Place) -> None:
    path = place.write("[bench]\nseeds = 7\n")
    path.chmod(0o666)
    with pytest.raises(ConfigError, match="anybody can write this file"):
        place.load()
    assert place.load(config=path).settings.bench.seeds == 7


@pytest.mark.parametrize(
    ("variable", "value", "key", "expected"),
    [
        ("OUTERLOOP_SLURM__WAKE", "yes", ("slurm", "wake"), True),
        ("OUTERLOOP_SLURM__WAKE", "0", ("slurm", "wake"), False),
        ("OUTERLOOP_STATE__MIN_FREE_GB", "0.5", ("state", "min_free_gb"), 0.5),
        ("OUTERLOOP_STATE__MIN_FREE_GB", "2", ("state", "min_free_gb"), 2.0),
        (
            "OUTERLOOP_SLURM__OPTIONS",
            '{"nice": 10, "spread-job": true}',
            ("slurm", "options"),
            {"nice": 10, "spread-job": True},
        ),
        ("OUTERLOOP_SLURM__OPTIONS__EXCLUSIVE", "True", ("slurm", "options"), {"exclusive": True}),
        ("OUTERLOOP_SLURM__OPTIONS__NICE", "10", ("slurm", "options"), {"nice": 10}),
        ("OUTERLOOP_SLURM__OPTIONS__COMMENT", "a b", ("slurm", "options"), {"comment": "a b"}),
        ("OUTERLOOP_SLURM__ACCOUNT", "", ("slurm", "account"), ""),
    ],
)
def test_variables(place: Place, variable: str, value: str, key: tuple[str, str], expected: object) -> None:
    settings = place.load_with(variable, value).settings
    assert getattr(getattr(settings, key[0]), key[1]) == expected


@pytest.mark.parametrize("value", ["x, y", '["x", "y"]'])
def test_variables_reach_targets_in_their_own_spelling(place: Place, value: str) -> None:
    place.write('[targets.My-Solver]\nrepository = "r"\n')
    loaded = place.load(OUTERLOOP_TARGETS__MY_SOLVER__BENCHMARKS=value)
    assert loaded.settings.targets["My-Solver"].benchmarks == ("x", "y")


@pytest.mark.parametrize(
    ("variable", "complaint"),
    [
        ("OUTERLOOP_SLURM__ACOUNT", "OUTERLOOP_SLURM__ACOUNT: slurm.acount: no such key in [slurm]; did you mean"),
        ("OUTERLOOP_SLURM_ACCOUNT", "OUTERLOOP_SLURM_ACCOUNT: not a setting; did you mean OUTERLOOP_SLURM__ACCOUNT?"),
        ("OUTERLOOP___X", "OUTERLOOP___X: "),
    ],
)
def test_a_misspelt_variable_is_not_ignored(place: Place, variable: str, complaint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        place.load_with(variable, "x")
    assert complaint in str(caught.value)


def test_variables_that_jobs_carry_are_no_settings(place: Place) -> None:
    assert place.load(OUTERLOOP_RUN="r-1", OUTERLOOP_TRY="2").origins == {}


def test_flags(place: Place) -> None:
    place.write('[targets."v1.2"]\nrepository = "r"\n')
    loaded = place.load(overrides={"slurm.account": None, "bench.seeds": "3", "targets.v1.2.branch": "dev"})
    assert loaded.settings.bench.seeds == 3
    assert loaded.settings.targets["v1.2"].branch == "dev"
    assert "slurm.account" not in loaded.origins
    with pytest.raises(ConfigError, match=r"command line: bench\.seed: no such key"):
        place.load(overrides={"bench.seed": 3})


def test_options_of_several_layers_are_merged_and_an_empty_table_clears(place: Place) -> None:
    place.write('[slurm.options]\nnice = 5\ncomment = "site"\n', place.site)
    place.write('[slurm.options]\ncomment = "user"\n', place.user)
    assert place.load().settings.slurm.options == {"nice": 5, "comment": "user"}
    place.write("[slurm]\noptions = {}\n")
    assert place.load().settings.slurm.options == {}


@pytest.mark.parametrize("option", sorted(OWNED_OPTIONS))
def test_owned_options_are_refused_also_when_abbreviated(option: str) -> None:
    assert refused_option(option)
    assert refused_option(option[:-1])


@pytest.mark.parametrize("option", sorted(OWNED_OPTIONS | NAMED_OPTIONS))
def test_options_of_the_site_are_neither_owned_nor_named_by_a_key(place: Place, option: str) -> None:
    for spelled in (option, option[:-1]):
        place.write(f'[slurm.options]\n{spelled} = "x"\n')
        with pytest.raises(ConfigError, match=f"'{spelled}'"):
            place.load()


@pytest.mark.parametrize("option", sorted(NAMED_OPTIONS - OWNED_OPTIONS))
def test_a_step_may_have_a_partition_of_its_own(option: str) -> None:
    assert refused_option(option) is None


@pytest.mark.parametrize(
    "option", ["nice", "mail-user", "mail-type", "comment", "gres", "reservation", "mem-per-cpu", "mem", "gpus"]
)
def test_other_options_are_the_sites_own(option: str) -> None:
    assert refused_option(option) is None


@pytest.mark.parametrize("option", ["", "J", "-J", "--nice", "Nice", "a b", "nice\n", "nice=1", "mail_user"])
def test_only_long_names_are_options(option: str) -> None:
    assert refused_option(option)


def test_settings_cannot_be_changed(place: Place) -> None:
    settings = place.load().settings
    with pytest.raises(ValueError, match="frozen"):
        settings.bench.seeds = 3  # type: ignore[misc] # the point of the test


def test_every_key_is_documented_by_its_row(place: Place) -> None:
    keys = {row.key for row in as_rows(place.load())}
    assert keys == {f"{section}.{name}" for section, model in SECTIONS.items() for name in model.model_fields}


def test_a_secret_is_read_from_a_private_file_only(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text("s3cret\n", encoding="utf-8")
    path.chmod(0o600)
    assert read_secret(path) == "s3cret"
    for mode in (0o640, 0o604, 0o620):
        path.chmod(mode)
        with pytest.raises(ConfigError, match="others can read this secret") as caught:
            read_secret(path)
        assert "s3cret" not in str(caught.value)


def test_what_is_no_secret_file_is_refused(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.touch(mode=0o600)
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo, 0o600)
    for path, complaint in (
        (empty, "empty"),
        (fifo, "regular file"),
        (tmp_path, "regular"),
        (tmp_path / "no", "No such"),
    ):
        with pytest.raises(ConfigError, match=complaint):
            read_secret(path)


def test_a_step_up_in_a_path_never_reaches_a_sandbox(place: Place, tmp_path: Path) -> None:
    (tmp_path / "far" / "deep").mkdir(parents=True)
    (place.project / "link").symlink_to(tmp_path / "far" / "deep")
    place.write('[steward]\nfiles = "../agents"\n[targets.a]\nrepository = "link/../r"\nimage = "~/../i.sif"\n')
    settings = place.load().settings
    assert settings.steward.files == str(place.project.parent / "agents")
    assert settings.targets["a"].repository == str(tmp_path / "far" / "r")
    assert settings.targets["a"].image == str(place.home.parent / "i.sif")


@given(st.text(min_size=1, max_size=30))
def test_resolving_any_path_text_ends_in_a_path_or_a_reason(text: str) -> None:
    for key in (("state", "root"), ("targets", "a", "repository"), ("container", "scratch"), ("slurm", "python")):
        try:
            found = resolved(key, text, Path("/base"), {"HOME": "/home/u", "A": "/a"})
        except ValueError:
            continue
        assert isinstance(found, str)


@pytest.mark.parametrize("name", [".", "..", ".git", "a b", "a/b", "x" * 65])
def test_a_targets_name_leads_to_no_folder_above_and_no_hidden_one(place: Place, name: str) -> None:
    place.write(f'[targets."{name}"]\nrepository = "/somewhere"\n')
    with pytest.raises(ConfigError, match="targets"):
        place.load()


# --- keys of roles --------------------------------------------------------------------------------------------------


class TwoRoles(Settings):
    """What settings will be with a second role."""

    reviewer: Agent = Agent()


def two_roles(root: Path, **keys: str) -> TwoRoles:
    roles = {role: Agent(key_file=keys[role], key_env="MODEL_KEY") for role in keys if role != "steward"}
    steward = Steward(key_file=keys["steward"], key_env="MODEL_KEY")
    return TwoRoles(state=State(root=root), steward=steward, **roles)


@pytest.mark.parametrize("other", ["key", "./key", "sub/../key", "link", "folder/key"])
def test_two_roles_never_share_a_key_file_under_whatever_name(tmp_path: Path, other: str) -> None:
    (tmp_path / "key").write_text("s3cret", encoding="utf-8")
    (tmp_path / "sub").mkdir()
    (tmp_path / "link").symlink_to("key")
    (tmp_path / "folder").symlink_to(tmp_path)
    with pytest.raises(ValidationError, match=r"\[steward\] and \[reviewer\] have one key_file"):
        two_roles(tmp_path, steward=str(tmp_path / "key"), reviewer=f"{tmp_path}/{other}")


def test_roles_with_a_key_each_or_none_are_fine(tmp_path: Path) -> None:
    two_roles(tmp_path, steward=str(tmp_path / "key"), reviewer=str(tmp_path / "other"))
    two_roles(tmp_path, steward=str(tmp_path / "key"))
    assert TwoRoles(state=State(root=tmp_path)).reviewer.key_file == ""


def test_a_key_that_its_session_could_not_find_is_refused(place: Place) -> None:
    place.write('[steward]\nkey_file = "key"\n')
    with pytest.raises(ConfigError, match=r"outerloop.toml: steward: key_file is set, and key_env is not"):
        place.load()


@pytest.mark.parametrize(
    "name",
    [
        "PATH",
        "HOME",
        "TMPDIR",
        "BASH_ENV",
        "LD_PRELOAD",
        "PYTHONPATH",
        "APPTAINERENV_X",
        "SINGULARITY_BIND",
        "GIT_SSH_COMMAND",
        "SLURM_JOB_ID",
        "SBATCH_ACCOUNT",
        "OUTERLOOP_ROLE",
    ],
)
def test_a_key_is_not_put_into_a_variable_that_steers_programs(place: Place, name: str) -> None:
    place.write(f'[steward]\nkey_file = "key"\nkey_env = "{name}"\n')
    with pytest.raises(ConfigError, match=f"steward.key_env: {name} steers programs"):
        place.load()


@pytest.mark.parametrize("name", ["MODEL_API_KEY", "GITHUB_TOKEN", "PATHS", "KEY"])
def test_a_key_may_have_any_other_variable(place: Place, name: str) -> None:
    place.write(f'[steward]\nkey_file = "key"\nkey_env = "{name}"\n')
    assert place.load().settings.steward.key_env == name


def test_the_settings_that_are_shown_have_the_path_of_a_key_and_never_the_key(place: Place) -> None:
    (place.project / "key").write_text("s3cret", encoding="utf-8")
    place.write('[steward]\nkey_file = "key"\nkey_env = "MODEL_KEY"\n')
    loaded = place.load()
    shown = {row.key: row.value for row in as_rows(loaded)}
    assert shown["steward.key_file"] == str(place.project / "key")
    assert "s3cret" not in repr((loaded, as_rows(loaded)))


def test_a_key_that_was_put_where_its_variable_belongs_is_not_repeated(place: Place) -> None:
    place.write('[steward]\nkey_file = "key"\nkey_env = "sk-s3cret"\n')
    with pytest.raises(ConfigError, match=r"steward\.key_env") as refused:
        place.load()
    assert "s3cret" not in str(refused.value)
