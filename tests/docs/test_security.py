"""Every promise of the page on security names the tests that hold it, and these tests exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from documentation import ROOT

# Beginning of a promise of docs/security.md, and the tests that hold it: file, test.
HELD_BY: dict[str, tuple[tuple[str, str], ...]] = {
    "**Names.**": (("test_escape.py", "test_comments_and_terminals_get_one_line"),
                   ("test_escape.py", "test_strings_of_toml_yaml_and_c"),
                   ("test_escape.py", "test_html_has_the_same_elements")),
    "**Models in Python.**": (("runs/test_trust.py", "test_no_command_runs_it"),
                              ("runs/test_trust.py", "test_a_file_cannot_trust_itself"),
                              ("runs/test_trust.py", "test_in_python_trust_is_said_by_a_keyword")),
    "**Files.**": (("test_files.py", "test_files_are_opened_in_one_place"),
                   ("test_files.py", "test_every_reader_refuses_what_is_no_file"),
                   ("test_files.py", "test_links_are_followed_or_refused"),
                   ("test_files.py", "test_a_size_is_counted_while_a_file_is_read")),
    "**Bytes.**": (("recording/test_bombs.py", "test_arrays_of_python_objects_are_not_read"),
                   ("recording/test_bombs.py", "test_an_archive_that_states_less_than_it_unpacks_to"),
                   ("recording/test_servo_logs.py", "test_a_pickle_that_calls_anything_is_refused"),
                   ("recording/test_servo_logs.py", "test_views_of_one_storage_are_counted_each"),
                   ("recording/test_servo_logs.py", "test_nested_tuples_as_a_key_do_not_end_the_process")),
    "**Results.**": (("runs/test_result_folder.py", "test_two_hundred_killed_saves_leave_whole_results"),
                     ("runs/test_result_folder.py", "test_a_mixed_folder_is_refused"),
                     ("runs/test_result_folder.py", "test_a_link_named_like_an_interrupted_save_is_not_followed"),
                     ("runs/test_result_folder.py", "test_an_unfinished_save_of_a_stranger_does_not_lead_outside"),
                     ("runs/test_two_writers.py", "test_two_writers_at_once_leave_one_whole_result")),
    "- The studio listens": (("studio/test_door.py", "test_a_foreign_host_is_refused"),
                             ("studio/test_door.py", "test_a_foreign_origin_is_refused"),
                             ("studio/test_door.py", "test_other_hosts_only_when_asked_for")),
    "- A token opens": (("studio/test_limits.py", "test_a_token_lets_in_once"),
                        ("studio/test_door.py", "test_the_token_is_exchanged_for_a_strict_cookie")),
    "- An open page": (("studio/test_door.py", "test_a_secret_is_used_for_a_week_whatever_the_restarts"),
                       ("studio/test_door.py", "test_a_secret_that_others_could_read_or_replace_is_not_used"),
                       ("studio/test_door.py", "test_no_secret_is_kept_of_a_studio_that_other_machines_reach"),
                       ("studio/test_confinement.py", "test_the_secret_of_the_cookie_is_not_read")),
    "- The studio works only": (("studio/test_workspace.py", "test_a_marker_that_the_studio_did_not_write_is_none"),
                                ("studio/test_workspace.py", "test_a_folder_with_links_changes_nothing_outside"),
                                ("studio/test_workspace.py", "test_folders_and_files_are_private")),
    "- The studio's worker": (("studio/test_confinement.py", "test_settings_that_name_other_files_are_refused"),
                              ("studio/test_confinement.py", "test_a_robot_table_names_a_file_beside_it"),
                              ("studio/test_confinement.py",
                               "test_devices_and_processes_are_outside_the_limits_of_a_worker")),
    "- The studio never runs": (("studio/test_confinement.py", "test_a_prior_that_names_a_python_file_is_refused"),),
    "- Every job": (("studio/test_limits.py", "test_a_run_that_reads_a_log_can_be_stopped"),
                    ("studio/test_limits.py", "test_bombs_are_refused_in_a_sentence"),
                    ("studio/test_limits.py", "test_a_request_that_does_not_arrive_ends")),
    "- Reports open": (("studio/test_door.py", "test_a_report_is_shut_in"),),
}
PAGE = ROOT / "docs" / "security.md"


def promises() -> list[str]:
    """Return the first words of all paragraphs with a bold name and of all points about the studio."""
    text = PAGE.read_text(encoding="utf-8")
    untrusted = text.partition("## What is not trusted")[2].partition("## How the studio")[0]
    studio = text.partition("## How the studio is protected")[2].partition("\n## ")[0]
    return [*re.findall(r"^\*\*[^*]+\*\*", untrusted, re.M), *re.findall(r"^- .*", studio, re.M)]


def test_every_promise_has_its_tests() -> None:
    without = [one for one in promises() if not any(one.startswith(begin) for begin in HELD_BY)]
    assert without == [] and len(promises()) == len(HELD_BY)


@pytest.mark.parametrize(("file", "name"), sorted({test for tests in HELD_BY.values() for test in tests}))
def test_the_tests_of_a_promise_exist(file: str, name: str) -> None:
    assert f"\ndef {name}(" in Path(ROOT, "tests", file).read_text(encoding="utf-8")
