"""The pages say what the code says, or these tests fail."""

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import click
import pytest

from latentprep.cli.main import COMMANDS, prep
from latentprep.core.errors import ExitCode, FaultCode, WarningCode
from latentprep.core.index import INDEX_COLUMNS, INDEX_VERSION
from latentprep.core.schema import COLUMNS, FORMAT_VERSION

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
SKIPPED_FOLDERS = {".venv", ".git", ".hypothesis", ".pytest_cache", "node_modules", "build", "demo", "demo_out"}

OPTIONS_OF_OTHERS = {
    *("--gpus-per-task", "--gpu-bind"),  # srun
    *("--porcelain", "--untracked-files"),  # git
    *("--check", "--disable-pip-version-check"),  # ruff, pip
    *("--compile", "--minutes"),  # the training of the bundled VAE
    *("--faults", "--seconds", "--seed"),  # make chaos
    "--cpus-per-task",  # sbatch
}


def load_generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_generate", DOCS / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


generate = load_generator()


def prose_pages() -> list[Path]:
    pages = ROOT.rglob("*.md")
    return sorted(page for page in pages if not SKIPPED_FOLDERS & set(page.relative_to(ROOT).parts))


def headings(page: Path) -> set[str]:
    """Anchors as GitHub makes them of headings."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def broken_links(page: Path) -> Iterator[str]:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        there = page.parent / path if path else page
        if not there.exists() or (anchor and anchor not in headings(there)):
            yield f"{page.relative_to(ROOT)} -> {target}"


@pytest.mark.parametrize("page", generate.pages(), ids=lambda page: page.name)
def test_generated_pages_are_current(page: Path):
    """`make docs` was run after the last change of a command, a fault or a module's docstring."""
    assert generate.pages()[page] == page.read_text(encoding="utf-8"), "run `make docs`"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_documented(name: str):
    assert f"\n## prep {name}\n" in (DOCS / "cli.md").read_text(encoding="utf-8")


def test_every_exit_code_is_documented():
    assert {int(code) for code in ExitCode} == {code for code, _ in generate.EXIT_CODES}


def test_every_fault_and_warning_has_a_text():
    """A code without a meaning sends people into the source."""
    source = (ROOT / "core" / "errors.py").read_text(encoding="utf-8")

    for codes in (FaultCode, WarningCode):
        assert [code.value for code in codes] == [code for code, _ in generate._members(source, codes.__name__)]


def test_every_relative_link_resolves():
    assert [] == [link for page in prose_pages() for link in broken_links(page)]


def test_a_broken_link_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The checker above must not be blind."""
    monkeypatch.setattr("tests.test_docs.ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text("# A title\n[a](page.md#a-title) [b](https://x.y) [c](none.md) [d](#none)\n", encoding="utf-8")

    assert ["page.md -> none.md", "page.md -> #none"] == list(broken_links(page))


def named_in(texts: list[Path], pattern: str) -> set[tuple[str, str]]:
    """(match, file) of all matches of ``pattern`` in ``texts``."""
    return {
        (match, str(path.relative_to(ROOT)))
        for path in texts
        for match in re.findall(pattern, path.read_text(encoding="utf-8"))
    }


def texts() -> list[Path]:
    """All that people of the project read: source with its docstrings, messages and help, pages, Makefile."""
    sources = [path for layer in generate.LAYERS for path in (ROOT / layer).rglob("*.py")]
    return [*sources, *(ROOT / "latentprep").glob("*.py"), *prose_pages(), ROOT / "Makefile"]


def test_every_page_that_is_named_exists():
    """Links are checked above; docstrings, help and messages name pages, too, and are what people read first."""
    pages = named_in(texts(), r"\bdocs/[\w-]+\.md")

    assert ("docs/verify.md", "cli/verify.py") in pages
    assert [] == sorted((page, file) for page, file in pages if not (ROOT / page).is_file())


def test_every_option_that_is_named_exists():
    """A message that recommends an option of an earlier version sends people into a second error."""
    named = named_in(texts(), r"(?<![\w-])--[a-z][a-z-]*[a-z]\b")

    assert ("--encoder-path", "preprocess/decode_row.py") in named
    assert [] == sorted((option, file) for option, file in named if option not in own_options() | OPTIONS_OF_OTHERS)


def own_options() -> set[str]:
    context = click.Context(prep)
    commands = [prep, *(prep.get_command(context, name) for name in COMMANDS)]
    return {"--help"} | {
        option for command in commands if command is not None for param in command.params for option in param.opts
    }


def test_the_format_page_is_the_schema():
    """Other tools are written against the page; the shards are written against the schema."""
    page = (DOCS / "format.md").read_text(encoding="utf-8")
    table = page.partition("| column | Arrow type | value |\n|---|---|---|\n")[2].partition("\n\n")[0]
    columns = [tuple(cell.strip().strip("`") for cell in line.split("|")[1:3]) for line in table.splitlines()]

    assert [(name, str(kind).replace("item: ", "")) for name, kind in COLUMNS.items()] == columns
    assert f"Format version: {FORMAT_VERSION}." in page


def test_the_format_page_has_the_columns_of_the_index():
    """Trainers that don't use the loaders are written against the page."""
    page = (DOCS / "format.md").read_text(encoding="utf-8").partition("## Index\n")[2]
    table = page.partition("| column | Arrow type | value |\n|---|---|---|\n")[2].partition("\n\n")[0]
    columns = [tuple(cell.strip().strip("`") for cell in line.split("|")[1:3]) for line in table.splitlines()]

    assert [(name, str(kind).replace("item: ", "")) for name, kind in INDEX_COLUMNS.items()] == columns
    assert f"Index version: {INDEX_VERSION}." in page


def test_the_index_names_every_page():
    index = (DOCS / "README.md").read_text(encoding="utf-8")

    assert [] == [page.name for page in DOCS.glob("*.md") if page.name != "README.md" and f"({page.name})" not in index]
