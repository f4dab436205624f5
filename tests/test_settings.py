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
from fencepost.harness.spec.respec import respec
from fencepost.harness.spec.spec import Spec
from fencepost.report.words.settings import again, settings
from fencepost.setting import CLIENTS, FAULTS, FILE, FLAG, LENGTHS, NAMES, PAIRS
from fencepost.settings import SETTINGS, Settings
from fencepost.workloads.locks.registry import LOCKS

REDIS = Spec("redis", "redis", LOCKS["redis"].read_options({}))
ON_THE_LINE = {name: setting for name, setting in SETTINGS.items() if setting.options}
# Another value than the default, by the form of a setting that has no choices and no bounds, or
# by the setting where only some names of a registry will do.
BY_FORM = {
    FLAG: True,
    FILE: "docker-compose.yml",
    FAULTS: ("pause", "kill:redis-1@9s"),
    PAIRS: {"etcd": "3.4"},
    LENGTHS: "0.9ttl..1.2ttl",
    CLIENTS: "1..2",
    NAMES: ("redis=r1", "r2:7000"),
}
BY_NAME = {"guard": "fenced", "store": "postgres", "until": ("ownership", "store")}


def other(setting):
    """Another value than the default that the setting takes."""
    if setting.name in BY_NAME:
        return BY_NAME[setting.name]
    if setting.choices:
        return next(choice for choice in setting.choices if choice != setting.default)
    if isinstance(setting.default, float):
        return setting.default * 1.5 or setting.most / 2
    if setting.least is not None:
        return setting.default * 3 // 2 + 1
    return BY_FORM[setting.form]


OTHER = {name: other(setting) for name, setting in ON_THE_LINE.items()}


def test_the_other_values_are_others_and_valid():
    for name, value in OTHER.items():
        SETTINGS[name].check(value)
        assert value != SETTINGS[name].default, name


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


@pytest.mark.parametrize("name", ["interval_s", "ttl_ms"])
def test_a_time_of_zero_can_be_repeated_where_zero_is_within_the_bounds(name):
    setting = replace(SETTINGS[name], least=0)
    assert setting.read(setting.written(0)[1]) == 0
    setting.check(0)
    with pytest.raises(ValueError, match=r"0 ms is out of range"):
        SETTINGS[name].check(SETTINGS[name].read("0"))


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
    assert respec(test) == spec
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
        respec(REDIS.to_json() | {"ttl_ms": "2s"})


def test_the_bound_of_liveness_is_that_of_the_checker():
    assert SETTINGS["liveness_bound_s"].default == DEFAULT_BOUND_S


@given(st.integers(1, 10**9))
def test_a_time_is_read_as_it_is_described(ms):
    described = times.describe(ms / 1000)
    assert times.seconds(described.replace("min", "m")) == pytest.approx(ms / 1000)
