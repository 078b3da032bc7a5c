"""Monte Carlo studies: every method on many logs of a virtual robot with known parameters."""

from dynid.study.result import Score, StudyResult
from dynid.study.run import run_study
from dynid.study.study import Contestant, Noise, Study, study_settings

__all__ = ["Contestant", "Noise", "Score", "Study", "StudyResult", "run_study", "study_settings"]
