"""Foreign names in XML, TOML, YAML, CSV and HTML: read back by other parsers as the same structure and text."""

from __future__ import annotations

import json
import re
import tomllib
from html.parser import HTMLParser
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from defusedxml.ElementTree import fromstring
from hostile import HARMLESS, names, renamed
from hypothesis import given, settings
from hypothesis import strategies as st

from dynid.cli.output import print_json
from dynid.escape import c_string, comment, terminal_text, toml_string, yaml_string
from dynid.excitation import FourierSeries, read_trajectory, write_trajectory
from dynid.files import json_text, write_whole
from dynid.html_tables import card, listed, paragraph, table
from dynid.report.figure import Figure, script_json
from dynid.robot import Robot
from dynid.robot.write_mjcf import to_mjcf
from dynid.runs.toml import dumps

yaml = pytest.importorskip("yaml")  # of Dask
ARM = Robot.builtin("arm3r").only(["joint1", "joint2"])
TEXTS = st.text(st.characters(codec="utf-8")) | names(1).map(lambda found: found[0])


def structure(text: str) -> list[tuple[str, tuple[str, ...]]]:
    """Elements and the names of their attributes."""
    return [(one.tag, tuple(one.attrib)) for one in fromstring(text).iter()]


@given(names(5))
@settings(max_examples=100, deadline=None)
def test_mjcf_has_the_same_elements_and_keeps_the_names(found: tuple[str, ...]) -> None:
    text = to_mjcf(renamed(ARM, found))
    assert structure(text) == structure(to_mjcf(renamed(ARM, HARMLESS)))
    in_xml = [re.sub("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", one) for one in found]
    root = fromstring(text)
    assert root.get("model") == in_xml[0] and root.find(".//body").get("name") == in_xml[3]
    assert root.find(".//joint").get("name") == in_xml[2]


@given(st.dictionaries(TEXTS, TEXTS | st.lists(TEXTS) | st.dictionaries(TEXTS, TEXTS)))
@settings(max_examples=200, deadline=None)
def test_toml_is_read_back_as_it_was(values: dict[str, object]) -> None:
    assert tomllib.loads(dumps(values)) == values


@given(TEXTS)
def test_strings_of_toml_yaml_and_c(text: str) -> None:
    assert tomllib.loads(f"x = {toml_string(text)}")["x"] == text
    assert yaml.safe_load(f"- {yaml_string(text)}") == [text]
    octal = re.sub(rb"\\(\d{3})", lambda hit: bytes([int(hit[1], 8)]), c_string(text)[1:-1].encode("ascii"))
    assert octal.decode() == text


def test_names_of_files_that_are_no_text_can_be_written() -> None:
    bad = "log\udcff.csv"
    assert tomllib.loads(f"x = {toml_string(bad)}")["x"] == "log\ufffd.csv"
    assert yaml.safe_load(yaml_string(bad)) == "log\ufffd.csv"
    for write in (c_string, comment, terminal_text):
        write(bad).encode()


def test_names_of_files_that_are_no_text_in_files_and_on_stdout(tmp_path: Path, capsys: pytest.CaptureFixture[str]
                                                               ) -> None:
    with write_whole(tmp_path / "page") as file:
        file.write(script_json({"log": "log\udcff.csv"}))
    print_json({"log": "log\udcff.csv"})
    for text in ((tmp_path / "page").read_text("utf-8"), capsys.readouterr().out):
        assert json.loads(text) == {"log": "log\udcff.csv"}


@given(TEXTS)
def test_comments_and_terminals_get_one_line(text: str) -> None:
    assert len(comment(text).splitlines()) <= 1 and comment(text).isprintable()
    assert terminal_text(text).replace("\n", "").replace("\xa0", "").replace("\u202f", "").isprintable()


@given(names(2))
@settings(max_examples=30, deadline=None)
def test_motions_name_their_joints(found: tuple[str, ...]) -> None:
    motion = FourierSeries(np.full((2, 1), 0.1), np.zeros((2, 1)), np.zeros(2), 1.0)
    with TemporaryDirectory() as folder:
        write_trajectory(motion, Path(folder) / "m.yaml", rate=10.0, joints=found)
        assert yaml.safe_load((Path(folder) / "m.yaml").read_text("utf-8"))["joint_names"] == list(found)
        write_trajectory(motion, Path(folder) / "m.csv", rate=10.0, joints=found)
        assert read_trajectory(Path(folder) / "m.csv", found).q.shape[1] == 2


class Elements(HTMLParser):
    """Start tags of a page with the names of their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, ...]] = []
        self.data: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, *(name for name, _ in attrs)))

    def handle_data(self, data: str) -> None:
        self.data.append(data)


def page(name: str) -> str:
    figure = Figure([{"x": [1], "name": name}], {"title": name}, name).__html__()
    return figure + card(name, paragraph(name), table([name], [[name]]), listed([(name, name)], name))


@given(names(1))
def test_html_has_the_same_elements(found: tuple[str, ...]) -> None:
    parsed = Elements(page(found[0]))
    assert parsed.found == Elements(page("harmless")).found
    assert json.loads(script_json({"name": found[0]})) == {"name": found[0]}


def test_json_has_a_line_for_each_key_and_no_number_that_is_not_finite() -> None:
    facts = {"name": 'a "b"\n\u00e9', "values": [1.0, 2.5e-9, None], "nested": {"is_good": True}}
    for is_ascii in (False, True):
        text = json_text(facts, ensure_ascii=is_ascii)
        assert json.loads(text) == facts and len(text.splitlines()) == len(facts) + 2 and text.isascii() == is_ascii
    assert json.loads(json_text({})) == {}
    with pytest.raises(ValueError, match="not JSON compliant"):
        json_text({"values": [float("nan")]})
