"""`plugrad new`: names, questions, and files that are never overwritten."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path

import pytest

import plugrad
from plugrad.cli.new import commands, package
from plugrad.plugins.releases import fitting_range
from tests.core.cli.conftest import Run
from tests.core.plugins.conftest import FakeSite


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is a terminal to ask in."""
    monkeypatch.setattr(commands, "is_terminal", lambda: True)
    monkeypatch.setattr(commands, "git_author", lambda: "Ada Lovelace <ada@example.org>")


def files_in(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def project_of(folder: Path) -> dict[str, object]:
    table: dict[str, object] = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    return table


@pytest.mark.parametrize("command", ["backend", "ops", "kernels"])
def test_help_has_examples(run: Run, command: str) -> None:
    assert command in run("new", "--help").stdout
    result = run("new", command, "--help")
    assert result.exit_code == 0
    assert f"plugrad new {command} foo" in result.stdout


def test_a_backend_is_written_beside_the_working_directory(run: Run, project: Path) -> None:
    result = run("new", "backend", "zz_foo", "--yes")
    assert result.exit_code == 0, result.output
    made = files_in(project / "plugrad-zz-foo")
    assert {
        ".github/workflows/test.yml",
        ".gitignore",
        "CHANGELOG.md",
        "LICENSE",
        "README.md",
        "plugrad_zz_foo/backend.py",
        "plugrad_zz_foo/kernels.py",
        "plugrad_zz_foo/plugin.py",
        "plugrad_zz_foo/py.typed",
        "pyproject.toml",
        "tests/test_backend.py",
    } <= made
    for file in made:
        assert file in result.stdout
    assert "cd plugrad-zz-foo" in result.stdout


def test_without_a_terminal_the_defaults_hold(run: Run, project: Path) -> None:
    assert run("new", "ops", "zz_foo").exit_code == 0
    assert "smooth_abs" in (project / "plugrad-zz-foo/plugrad_zz_foo/operators.yaml").read_text()


def test_without_a_terminal_a_missing_name_is_an_error(run: Run, project: Path) -> None:
    result = run("new", "backend")
    assert result.exit_code == 2
    assert "NAME is missing" in result.stderr
    assert not files_in(project)


def test_a_terminal_is_asked_for_everything(run: Run, project: Path, terminal: None) -> None:
    answers = ["zz_foo", "kernels", "zz-arrays", "there", "Arrays of zz", "", "apache-2.0", "y"]
    result = run("new", "backend", input="\n".join(answers) + "\n")
    assert result.exit_code == 0, result.output
    assert project_of(project / "there") | {"classifiers": [], "keywords": []} == {
        "name": "zz-arrays",
        "version": "0.1.0",
        "description": "Arrays of zz",
        "readme": "README.md",
        "license": "Apache-2.0",
        "license-files": ["LICENSE"],
        "authors": [{"name": "Ada Lovelace", "email": "ada@example.org"}],
        "requires-python": ">=3.11",
        "keywords": [],
        "classifiers": [],
        "dependencies": [f"plugrad{fitting_range(plugrad.__version__)}", "numpy>=2.1"],
        "optional-dependencies": project_of(project / "there")["optional-dependencies"],
        "entry-points": {"plugrad": {"zz_foo": "zz_arrays.plugin"}},
    }


def test_a_wrong_answer_is_asked_for_again(run: Run, project: Path, terminal: None) -> None:
    result = run("new", "backend", input="Zz Foo\nzz_foo\n" + "\n" * 6 + "y\n")
    assert result.exit_code == 0, result.output
    assert "try 'zz_foo'" in result.output
    assert (project / "plugrad-zz-foo").is_dir()


def test_options_are_not_asked_for(run: Run, project: Path, terminal: None) -> None:
    options = ["--style", "yaml", "--distribution", "zz", "--directory", "zz", "--author", "me"]
    result = run(
        "new", "ops", "zz_foo", *options, "--license", "none", "--description", "x", input="y\n"
    )
    assert result.exit_code == 0, result.output
    assert re.match(r"Write \d+ files to zz\?", result.output)
    assert "license" not in project_of(project / "zz")
    assert project_of(project / "zz")["authors"] == [{"name": "me"}]
    assert not (project / "zz/LICENSE").exists()


def test_who_says_no_gets_nothing(run: Run, project: Path, terminal: None) -> None:
    result = run("new", "ops", "zz_foo", input="\n" * 6 + "n\n")
    assert result.exit_code == 1
    assert not files_in(project)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Foo", "not of lower-case letters, digits and single '_' between them; try 'foo'"),
        ("my-device", "try 'my_device'"),
        ("2fast", "not of lower-case letters"),
        ("class", "a keyword of Python"),
        ("x" * 31, "longer than 30 characters"),
        ("cuda", "'cuda' is a backend of plugrad's own"),
        ("autograd", "'autograd' would get the dispatch key Autograd, which is taken"),
    ],
)
def test_backend_names_that_cannot_be(run: Run, project: Path, name: str, words: str) -> None:
    result = run("new", "backend", name, "--yes")
    assert result.exit_code == 2
    assert words in result.stderr
    assert not files_in(project)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Foo", "'Foo' cannot be a namespace"),
        ("plugrad", "the namespace 'plugrad' has operators already"),
        ("testing", "plugrad.testing exists already"),
        ("sin", "plugrad.sin exists already"),
        ("nn", "plugrad.nn exists already"),
    ],
)
def test_namespaces_that_cannot_be(run: Run, project: Path, name: str, words: str) -> None:
    result = run("new", "ops", name, "--yes")
    assert result.exit_code == 2
    assert words in result.stderr
    assert not files_in(project)


def test_an_installed_plugin_keeps_its_name(run: Run, site: FakeSite) -> None:
    site.backend("alpha", "1.2")
    for kind in ("backend", "ops", "kernels"):
        result = run("new", kind, "alpha", "--yes")
        assert result.exit_code == 2
        assert "'alpha' is installed already (plugrad-alpha 1.2)" in result.stderr


def test_a_backend_of_a_plugin_with_another_name_keeps_it(run: Run, site: FakeSite) -> None:
    source = """
        from plugrad.plugins import Backend, hookimpl

        class Beta(Backend):
            def __init__(self):
                super().__init__("beta", array_type=list)

        @hookimpl
        def plugrad_backends():
            return [Beta]
    """
    site.add("plugrad-greek", "1.0", "greek", source)
    result = run("new", "backend", "beta", "--yes")
    assert result.exit_code == 2
    assert "a backend named 'beta' is installed already" in result.stderr


@pytest.mark.parametrize(
    ("distribution", "words"),
    [
        ("x" * 41, "longer than 40 characters"),
        ("-foo", "'-foo' is not a distribution name"),
        ("3d-arrays", "the package '3d_arrays', which Python cannot import"),
        ("JSON", "'json' is a package already"),
        ("NumPy", "the distribution numpy"),
        ("tests", "a package 'tests' can be imported already"),
    ],
)
def test_distributions_that_cannot_be(run: Run, distribution: str, words: str) -> None:
    result = run("new", "ops", "zz_foo", "--yes", f"--distribution={distribution}")
    assert result.exit_code == 2
    assert words in result.stderr


def test_the_package_has_the_normalized_name_of_the_distribution(run: Run, project: Path) -> None:
    assert run("new", "ops", "zz_foo", "--yes", "--distribution", "ZZ.Great--Ops").exit_code == 0
    assert (project / "ZZ.Great--Ops/zz_great_ops/operators.py").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--style", "rust"], "'rust' is no style that is known: choose kernels or namespace"),
        (["--license", "WTFPL"], "choose Apache-2.0, MIT, BSD-3-Clause or none"),
        (["--description", "a\nb"], "expected a line of text"),
        (["--style", "namespace"], "--namespace is missing"),
        (["--style", "kernels", "--namespace", "numpy"], "goes with --style namespace"),
        (["--namespace", "no module"], "'no module' is not a module"),
        (["--namespace", "not_there"], "'not_there' cannot be imported (ModuleNotFoundError"),
        (["--namespace", "torch"], "try 'array_api_compat.torch', which does"),
        (["--namespace", "json"], "'json' has no __array_namespace_info__()"),
    ],
)
def test_options_that_cannot_be(run: Run, project: Path, options: list[str], words: str) -> None:
    result = run("new", "backend", "zz_foo", "--yes", *options)
    assert result.exit_code == 2
    assert words in result.stderr
    assert not files_in(project)


def test_quotes_in_a_description_arrive(run: Run, project: Path) -> None:
    text = 'Says "hello", with a \\ in it and an é'
    assert run("new", "backend", "zz_foo", "--yes", "--description", text).exit_code == 0
    assert project_of(project / "plugrad-zz-foo")["description"] == text


def test_a_folder_with_a_file_is_refused_and_stays_as_it_is(run: Run, project: Path) -> None:
    folder = project / "plugrad-zz-foo"
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    result = run("new", "backend", "zz_foo", "--yes")
    assert result.exit_code == 2
    assert "is not empty: it has notes.txt; nothing was written" in result.stderr
    assert files_in(project) == {"plugrad-zz-foo/notes.txt"}
    assert (folder / "notes.txt").read_text() == "mine"


def test_a_file_in_the_folders_place_is_refused(run: Run, project: Path) -> None:
    (project / "taken").write_text("mine")
    result = run("new", "ops", "zz_foo", "--yes", "--directory", "taken")
    assert result.exit_code == 2
    assert "taken exists and is not a folder" in result.stderr
    assert (project / "taken").read_text() == "mine"


def test_an_empty_repository_is_filled(run: Run, project: Path) -> None:
    (project / "repo/.git").mkdir(parents=True)
    (project / "repo/.git/config").write_text("mine")
    result = run("new", "backend", "zz_foo", "--yes", "--directory", "repo")
    assert result.exit_code == 0, result.output
    assert {".git/config", "pyproject.toml", "LICENSE"} <= files_in(project / "repo")


def test_folders_above_are_made(run: Run, project: Path) -> None:
    assert run("new", "ops", "zz_foo", "--yes", "--directory", "a/b/c").exit_code == 0
    assert (project / "a/b/c/pyproject.toml").exists()


def test_a_write_that_fails_leaves_nothing(
    run: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Path.write_text
    written: list[Path] = []

    def write_text(self: Path, *args: object, **kwargs: object) -> int:
        if len(written) == 5:
            raise OSError(28, "No space left on device")
        written.append(self)
        return real(self, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(Path, "write_text", write_text)
    result = run("new", "ops", "zz_foo", "--yes", "--directory", "a/b")
    assert result.exit_code == 2
    assert "cannot be written" in result.stderr
    assert "No space left on device" in result.stderr
    assert list(project.iterdir()) == []


def test_a_repository_that_cannot_be_filled_stays_empty(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = project / "repo"
    (target / ".git").mkdir(parents=True)
    real = Path.rename

    def rename(self: Path, other: Path) -> Path:
        if other.name == "c.txt":
            raise OSError(5, "Input/output error")
        return real(self, other)

    monkeypatch.setattr(Path, "rename", rename)
    files = {"a/one.txt": "1", "b.txt": "2", "c.txt": "3"}
    with pytest.raises(package.ScaffoldError, match="Input/output error"):
        package.write(files, target)
    assert [path.name for path in target.iterdir()] == [".git"]
    assert os.listdir(project) == ["repo"]


def test_the_author_is_asked_of_git(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from plugrad.cli.new.questions import git_author

    config = tmp_path / "gitconfig"
    config.write_text("[user]\n\tname = Ada\n\temail = ada@example.org\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.chdir(tmp_path)
    assert git_author() in ("Ada <ada@example.org>", "")
    monkeypatch.setenv("PATH", "")
    assert git_author() == ""


def test_every_template_is_used() -> None:
    used = {template for layout in package.LAYOUTS.values() for template in layout.values()}
    used |= {template for _, template in package.LICENSES.values()}
    folder = Path(str(package.__file__)).parent / "templates"
    there = {path.relative_to(folder).as_posix() for path in folder.rglob("*.tmpl")}
    assert there == {f"{template}.tmpl" for template in used}


def test_every_purpose_belongs_to_a_file() -> None:
    paths = {path for layout in package.LAYOUTS.values() for path in layout}
    assert set(package.PURPOSES) <= paths
    assert all(re.fullmatch(r"[^|$]+", what) for what in package.PURPOSES.values())
