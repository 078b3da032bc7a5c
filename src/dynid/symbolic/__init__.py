"""Code generation: a model as functions in C, CUDA, Rust, Python, JAX, PyTorch, Julia, CasADi, SymPy and LaTeX."""

from dynid.symbolic.base_rules import BaseForms, base_forms, closed_form_base
from dynid.symbolic.functions import OF_FRAME, RECIPES, Function
from dynid.symbolic.graph import Operations
from dynid.symbolic.program import WHAT, Program, generate

__all__ = ["OF_FRAME", "RECIPES", "WHAT", "BaseForms", "Function", "Operations", "Program", "base_forms",
           "closed_form_base", "generate"]
