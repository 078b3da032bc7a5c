"""The built documentation: without a warning, whole without a network, and searchable from a folder.

The whole site takes some fifteen seconds of the processor to build, so that its tests are among the slow ones.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys

import pytest
from documentation import DOCS, ROOT

import dynid
from dynid.cli.main import COMMANDS


def build(source, target):
    return subprocess.run([sys.executable, "-m", "sphinx", "-b", "html", "-W", "--keep-going", "-q", str(source),
                           str(target)], capture_output=True, text=True, timeout=300,
                          env={**os.environ, "PYTHONPATH": str(ROOT / "src")})


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    target = tmp_path_factory.mktemp("site")
    done = build(DOCS, target)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return target


@pytest.mark.slow
def test_it_builds_without_a_warning_and_has_every_page(site):
    pages = [page.relative_to(DOCS).with_suffix(".html") for page in DOCS.rglob("*.md")]
    assert len(pages) > 50
    assert [str(page) for page in pages if not (site / page).exists()] == []


def test_a_broken_link_or_anchor_stops_the_build(tmp_path):
    """Each is reported with its page, and nothing is reported of a page without one."""
    (tmp_path / "conf.py").write_text((DOCS / "conf.py").read_text(encoding="utf-8").replace(
        "HERE = Path(__file__).resolve().parent\n", f"HERE = Path({str(DOCS)!r})\n").replace('["static"]', "[]"))
    (tmp_path / "other.md").write_text("# Other\n\nNothing.\n")
    wrong = {"[here](#two)": "'two'", "[x](no.md)": "no.md", "[x](other.md#two)": "in doc 'other'",
             "![x](no.svg)": "no.svg", "$x^$": "equation"}
    for page, text in (("good", "[here](#one) [there](other.md#other) $x^2$"), ("index", " ".join(wrong))):
        (tmp_path / f"{page}.md").write_text(f"# One\n\n{text}\n\n```{{toctree}}\nother\n```\n")
    with open(tmp_path / "index.md", "a", encoding="utf-8") as file:
        file.write("\n```{toctree}\ngood\n```\n")
    done = build(tmp_path, tmp_path / "site")
    assert done.returncode != 0
    assert [code for code in wrong.values() if code not in done.stderr] == [], done.stderr
    assert "good.md" not in done.stderr and done.stderr.count("index.md") >= len(wrong), done.stderr


@pytest.mark.slow
def test_nothing_is_loaded_from_a_network(site):
    outside = re.compile(r'<(?:script|img|iframe|source)[^>]*\ssrc="(?:https?:)?//|<link[^>]*\shref="(?:https?:)?//')
    for page in site.rglob("*.html"):
        assert not outside.search(page.read_text(encoding="utf-8")), page
    for style in (site / "_static").rglob("*.css"):
        assert not re.search(r"@import|url\(['\"]?(?:https?:)?//", style.read_text(encoding="utf-8")), style


@pytest.mark.slow
def test_arguments_and_fields_of_public_names_have_a_line_each(site):
    page = (site / "api" / "runs.html").read_text(encoding="utf-8")
    settings = page[page.index("RunSettings"):]
    first = r'<strong>Attributes</strong></p>\s*<dl class="[^"]*fields">\s*<dt><code[^>]*><span class="pre">robot<'
    assert re.search(first, settings)
    assert "model_post_init" not in page
    assert [str(one) for one in (site / "api").glob("*.html")
            if re.search(r"<p>(Args|Attributes|Returns|Raises): ", one.read_text(encoding="utf-8"))] == []


@pytest.mark.slow
def test_equations_are_mathml(site):
    page = (site / "explain" / "identifiability.html").read_text(encoding="utf-8")
    assert page.count("<math ") > 3 and not re.search("<script[^>]*mathjax", page, flags=re.IGNORECASE)


@pytest.mark.slow
def test_every_public_name_and_command_is_described_once(site):
    text = "".join(page.read_text(encoding="utf-8") for page in (site / "api").glob("*.html"))
    names = [name for name in dynid.__all__ if name != "__version__"]
    for namespace in ("terms", "controllers", "trajectories", "literature"):
        names += [f"{namespace}.{name}" for name in getattr(dynid, namespace).__all__]
    assert [name for name in names if text.count(f'id="dynid.{name}"') != 1] == []
    commands = (site / "commands.html").read_text(encoding="utf-8")
    assert [name for name in COMMANDS if f"Usage: dynid {name}" not in commands] == []


@pytest.mark.slow
def test_search_finds_a_payload_without_a_server(site):
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("needs Chromium")
    with playwright.sync_playwright() as starter:
        window = starter.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        page = window.new_page()
        asked, errors = [], []
        page.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(f"{(site / 'search.html').as_uri()}?q=payload")
        page.wait_for_selector("#search-results ul.search li a", timeout=120_000)
        found = page.eval_on_selector_all("#search-results ul.search li a", "all => all.map(one => one.href)")
        window.close()
    assert any(link.split("?")[0].split("#")[0].endswith("payload.html") for link in found), found
    assert all(url.startswith("file:") for url in asked) and not errors
