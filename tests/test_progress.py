"""Progress: sentences with a share of the whole that never goes back."""

from __future__ import annotations

from dynid.progress import Progress


def heard() -> tuple[Progress, list[tuple[str, float]]]:
    said: list[tuple[str, float]] = []
    return Progress(lambda sentence, share: said.append((sentence, share))), said


def test_parts_say_shares_of_the_whole() -> None:
    progress, said = heard()
    progress("begin", 0.0)
    part = progress.part(0.2, 0.6)
    part("half of the part", 0.5)
    part.part(0.5, 1.0)("half of its second half", 0.5)
    progress("end", 1.0)
    assert [round(share, 12) for _, share in said] == [0.0, 0.4, 0.5, 1.0]


def test_the_share_never_goes_back() -> None:
    progress, said = heard()
    for share in (0.5, 0.1, None, 0.7, -3.0, 9.0, 0.2):
        progress("now", share)
    assert [share for _, share in said] == [0.5, 0.5, 0.5, 0.7, 0.7, 1.0, 1.0]


def test_a_function_of_a_sentence_is_a_progress_too() -> None:
    said: list[str] = []
    progress = Progress.from_callback(said.append)
    progress("reading", 0.3)
    progress.part(0.0, 1.0)("folding")
    assert said == ["reading", "folding"] and Progress.from_callback(progress) is progress
