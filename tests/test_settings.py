"""Each setting is read, validated, shown and written back from its one entry in the table."""

from __future__ import annotations

import json
import shlex
from dataclasses import fields, replace

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from fencepost import times
from fencepost.checker.liveness import DEFAULT_BOUND_S
from fencepost.harness.command.test import test as command
from fencepost.harness.errors import BadArguments
from fencepost.harness.spec import from_arguments
from fencepost.harness.spec.respec import stored
from fencepost.harness.spec.spec import Spec
from fencepost.report.words.settings import again, settings
from fencepost.settings import SETTINGS, Settings
from fencepost.workloads.locks.registry import LOCKS

REDIS = Spec("redis", "redis", LOCKS["redis"].read_options({}))
# Give a value other than the default for each setting that a command line has.
OTHER = {
    "aim": True,
    "nemesis": ("pause", "kill:redis-1@9s"),
    "guard": "fenced",
    "store": "postgres",
    "shared": 0.5,
    "locks": 3,
    "server": {"etcd": "3.4"},
    "services": ("redis=r1", "r2:7000"),
    "compose": "docker-compose.yml",
    "containers": ("./mydb.py=db1",),
    "time_s": 7.5,
    "segment_s": 90.0,
    "seed": 4,
    "concurrency": 2,
    "ttl_ms": 1500,
    "hold": "0.9ttl..1.2ttl",
    "think": "50ms",
    "contention": "1..2",
    "interval_s": 0.25,
    "persistence": "always",
    "restart": "3s",
    "failed_release": "nothing",
    "until": ("ownership", "store"),
}
ON_THE_LINE = {name: setting for name, setting in SETTINGS.items() if setting.options}


def test_each_field_of_a_run_is_a_setting_or_identifies_the_run():
    of = {"name", "lock", "options", "scheduled", "scenario", "segment"}
    assert {one.name for one in fields(Settings)} == {*SETTINGS, *of}


def test_no_two_settings_share_a_word_or_an_option():
    words = [setting.word for setting in SETTINGS.values()]
    options = [option for setting in SETTINGS.values() for option in setting.options]
    assert len({*words}) == len(words)
    assert len({*options}) == len(options)


@pytest.mark.parametrize("name", SETTINGS)
def test_each_setting_has_a_help_text_and_a_default_within_its_bounds(name):
    setting = SETTINGS[name]
    assert setting.label and setting.what and not setting.what.endswith(".")
    setting.check(setting.default)


@pytest.mark.parametrize("name", ON_THE_LINE)
def test_a_repeating_command_line_reads_back_to_the_same_settings(name):
    setting = ON_THE_LINE[name]
    for value in (OTHER[name], json.loads(json.dumps(OTHER[name]))):
        option, *text = setting.written(value)
        assert option == setting.options[0]
        assert setting.read(*text or [True]) == OTHER[name]


def test_the_command_has_an_option_for_every_setting():
    app = typer.Typer()
    app.command()(command)
    made = {option for one in typer.main.get_command(app).params for option in one.opts}
    assert {option for setting in SETTINGS.values() for option in setting.options} <= made


def test_a_run_described_in_its_test_json_is_shown_with_every_setting_and_can_be_repeated(tmp_path):
    ours = {"services": (), "compose": "", "containers": ()}
    options = {**REDIS.options, "token": "incr"}
    spec = replace(REDIS, **{**OTHER, **ours, "shared": 0.0, "options": options})
    test = json.loads(json.dumps(spec.to_json()))
    assert stored(test) == spec
    shown = dict(settings(test))
    for setting in SETTINGS.values():
        assert setting.title in shown
    words = shlex.split(again(test, tmp_path))
    assert words[:3] == ["fencepost", "test", "redis"]
    rest = words[3:]
    aimed = rest.index("--aim")
    rest.insert(aimed + 1, "true")
    pairs = dict(zip(rest[::2], rest[1::2], strict=True))
    chosen = {
        setting.word: pairs[setting.options[0]]
        for setting in ON_THE_LINE.values()
        if setting.options[0] in pairs
    }
    repeated = from_arguments.spec("redis", {"token": "incr"}, chosen)
    assert repeated == spec


def test_a_setting_is_written_in_python_as_on_the_command_line_or_as_it_is():
    one = from_arguments.spec("redis", {}, {"nemesis": "pause, kill", "ttl": "500ms", "seed": "3"})
    two = from_arguments.spec("redis", {}, {"nemesis": ["pause", "kill"], "ttl": 0.5, "seed": 3})
    assert one == two == replace(REDIS, nemesis=("pause", "kill"), ttl_ms=500, seed=3)
    assert from_arguments.spec("redis", {}, {"work": {"extend": 1}}).work == {"extend": 1}


def test_a_flag_is_written_without_a_value_or_not_at_all():
    aim = SETTINGS["aim"]
    assert (aim.written(True), aim.written(False)) == (["--aim"], [])
    assert from_arguments.spec("redis", {}, {"aim": True, "nemesis": "clock"}).aim is True
    with pytest.raises(BadArguments, match="aim 'perhaps': choose one of: true, false"):
        from_arguments.spec("redis", {}, {"aim": "perhaps"})


def test_a_setting_that_does_not_exist_is_named_with_all_that_do():
    with pytest.raises(BadArguments, match=r"there is no setting 'tim'; choose one of: nemesis, "):
        from_arguments.spec("redis", {}, {"tim": 3})


def test_a_stored_setting_of_another_type_is_named():
    with pytest.raises(BadArguments, match=r"Expected `int`, got `str` - at `\$\.ttl_ms`"):
        stored(REDIS.to_json() | {"ttl_ms": "2s"})


def test_the_bound_of_liveness_is_that_of_the_checker():
    assert SETTINGS["liveness_bound_s"].default == DEFAULT_BOUND_S


@given(st.integers(1, 10**9))
def test_a_time_is_read_as_it_is_described(ms):
    described = times.describe(ms / 1000)
    assert times.seconds(described.replace("min", "m")) == pytest.approx(ms / 1000)
