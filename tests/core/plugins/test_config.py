"""Reading the configuration of a project."""

from __future__ import annotations

from pathlib import Path

import pytest

from plugrad.plugins.config import Config, ConfigError, Setting, load_config


def read(folder: Path, **environ: str) -> Config:
    return load_config(folder, environ)


def test_nothing_is_configured_in_an_empty_folder(project: Path) -> None:
    config = read(project)
    assert config.device() is None
    assert config.file is None


def test_plugrad_toml_is_found_upward(project: Path) -> None:
    file = project / "plugrad.toml"
    file.write_text('backend = "cuda"\n')
    inner = project / "a" / "b"
    inner.mkdir(parents=True)
    assert read(inner).device() == Setting("cuda", f"'backend' in {file}")


def test_pyproject_table_is_read(project: Path) -> None:
    file = project / "pyproject.toml"
    file.write_text('[tool.plugrad]\ndevice = "cuda:1"\n')
    assert read(project).device() == Setting("cuda:1", f"'device' in {file}")


def test_pyproject_without_the_table_is_passed_over(project: Path) -> None:
    (project / "plugrad.toml").write_text('backend = "jax"\n')
    inner = project / "inner"
    inner.mkdir()
    (inner / "pyproject.toml").write_text('[project]\ndependencies = ["plugrad"]\n')
    setting = read(inner).device()
    assert setting is not None
    assert setting.value == "jax"


def test_pyproject_that_does_not_mention_plugrad_need_not_be_valid(project: Path) -> None:
    (project / "pyproject.toml").write_text("this is = = no TOML")
    assert read(project).file is None


def test_nearest_file_wins_as_a_whole(project: Path) -> None:
    (project / "plugrad.toml").write_text('device = "cuda:1"\n')
    inner = project / "inner"
    inner.mkdir()
    (inner / "plugrad.toml").write_text("")
    assert read(inner).device() is None


def test_plugrad_toml_counts_before_pyproject_beside_it(project: Path) -> None:
    (project / "pyproject.toml").write_text('[tool.plugrad]\nbackend = "cuda"\n')
    (project / "plugrad.toml").write_text('backend = "jax"\n')
    setting = read(project).device()
    assert setting is not None
    assert setting.value == "jax"


def test_environment_counts_before_the_file(project: Path) -> None:
    (project / "plugrad.toml").write_text('device = "cuda:1"\n')
    setting = read(project, PLUGRAD_BACKEND="jax").device()
    assert setting == Setting("jax", "PLUGRAD_BACKEND in the environment")


def test_device_says_more_than_the_backend_it_belongs_to(project: Path) -> None:
    setting = read(project, PLUGRAD_BACKEND="cuda", PLUGRAD_DEVICE="cuda:1").device()
    assert setting == Setting("cuda:1", "PLUGRAD_DEVICE in the environment")


def test_device_of_another_backend_is_a_contradiction(project: Path) -> None:
    config = read(project, PLUGRAD_BACKEND="jax", PLUGRAD_DEVICE="cuda:1")
    with pytest.raises(
        ConfigError, match=r"PLUGRAD_DEVICE .* 'cuda:1', but PLUGRAD_BACKEND .*'jax'"
    ):
        config.device()


def test_empty_variable_counts_as_unset(project: Path) -> None:
    assert read(project, PLUGRAD_BACKEND="").device() is None


def test_plugins_to_load_are_listed(project: Path) -> None:
    (project / "plugrad.toml").write_text('plugins = ["profiler"]\n')
    assert read(project).plugins == ("profiler",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('bakend = "cpu"', r"plugrad.toml: unknown key 'bakend'; did you mean 'backend'\?"),
        ('colour = "red"', "unknown key 'colour'; known keys are device, backend, plugins, "),
        ("backend = 3", r"'backend' in .*plugrad.toml must be a string, got 3 \(int\)"),
        ('backend = "cuda:1"', "must be the name of a backend .* got 'cuda:1'; use 'device'"),
        ('device = "cuda:x"', "'device' in .*: Invalid device string: 'cuda:x'"),
        ('plugins = "profiler"', "'plugins' in .* must be a list of strings, got 'profiler'"),
        ("plugins = [1]", "must be a list of strings"),
        ("backend = ", r"plugrad.toml cannot be read: Invalid value"),
    ],
)
def test_unusable_file_is_reported_with_its_name(project: Path, text: str, message: str) -> None:
    (project / "plugrad.toml").write_text(text)
    with pytest.raises(ConfigError, match=message):
        read(project)


@pytest.mark.parametrize(
    "text",
    [
        "device = " + "[" * 2000 + "]" * 2000,
        "device = 1" + "0" * 5000,
        "[kernels" + ".a" * 2000 + ']\nb = "c"',
        "device = { " + "a = { " * 500 + "}" * 501,
    ],
)
def test_a_file_that_is_nested_too_deep_is_reported_with_its_name(project: Path, text: str) -> None:
    file = project / "plugrad.toml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=str(file)):
        read(project)


def test_unusable_variable_is_reported_with_its_name(project: Path) -> None:
    with pytest.raises(ConfigError, match="PLUGRAD_DEVICE in the environment: Invalid device"):
        read(project, PLUGRAD_DEVICE="cuda:")


def test_lists_in_the_environment_are_separated_by_commas(project: Path) -> None:
    config = read(project, PLUGRAD_DISABLE="foo, plugrad-bar,,", PLUGRAD_PREFER="baz")
    assert config.names("disable") == ("foo", "plugrad-bar")
    assert config.names("prefer") == ("baz",)
    (setting, default) = config.all_settings("prefer")
    assert (setting.source, setting.layer) == ("PLUGRAD_PREFER in the environment", "environment")
    assert (default.value, default.layer) == ((), "default")


@pytest.mark.parametrize(
    ("variable", "meant"),
    [
        ("PLUGRAD_BACKND", "PLUGRAD_BACKEND"),
        ("PLUGRAD_DEVICES", "PLUGRAD_DEVICE"),
        ("PLUGRAD_DISABLED", "PLUGRAD_DISABLE"),
        ("PLUGRAD_FALLBCK", "PLUGRAD_FALLBACK"),
        ("PLUGRAD_SHOW_DISPATCH_TRACES", "PLUGRAD_SHOW_DISPATCH_TRACE"),
    ],
)
def test_a_misspelt_variable_is_an_error_with_the_nearest_one(
    project: Path, variable: str, meant: str
) -> None:
    message = f"unknown variable '{variable}' in the environment; did you mean '{meant}'"
    with pytest.raises(ConfigError, match=message):
        read(project, **{variable: "x"})


def test_variables_that_are_like_none_of_ours_are_left_to_plugins(project: Path) -> None:
    read(project, PLUGRAD_FOO_STREAMS="3", PLUGRAD_TEST_CORE="compiled", PLUGRAD_PURE="1")


def test_tables_of_backends_are_read_option_by_option(project: Path) -> None:
    file = project / "pyproject.toml"
    file.write_text('[tool.plugrad.backends.foo]\nthreads = 4\nfallback = "cpu"\nmode.a = 1\n')
    config = read(project)
    assert config.options("foo") == {
        "threads": Setting(4, f"'backends.foo.threads' in {file}"),
        "mode": Setting({"a": 1}, f"'backends.foo.mode' in {file}"),
    }
    assert config.fallback("foo") == Setting("cpu", f"'backends.foo.fallback' in {file}")
    assert config.fallback("bar") is None
    assert list(config.configured_backends()) == ["foo"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("backends = 3", "'backends' must be a table"),
        ("[backends]\nfoo = 3", r"'backends\.foo' must be a table of options, .* got 3 \(int\)"),
        ("[backend.foo]\nthreads = 3", r"options of a backend are in the table \[backends\.<na"),
        ('[backends."foo:1"]\nthreads = 3', "with the name of a backend such as 'cpu'"),
        ("[backend]", r"options of a backend are in the table \[backends\.<name>\]"),
        ("fallback = true", "'fallback' in .* must be a string, got True"),
        ('fallback = "cpu:0"', "must be the name of a backend such as 'cpu' or 'cuda', got 'cpu:0"),
        ('prefer = "foo"', "'prefer' in .* must be a list of strings, got 'foo'"),
        ("disable = [1]", "'disable' in .* must be a list of strings"),
        ("[bakends.foo]", "unknown key 'bakends'; did you mean 'backends'"),
    ],
)
def test_unusable_tables_and_lists_are_reported(project: Path, text: str, message: str) -> None:
    (project / "plugrad.toml").write_text(text + "\n")
    with pytest.raises(ConfigError, match=message):
        read(project)
