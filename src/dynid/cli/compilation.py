"""Message that kernels are being compiled, which takes a while at the first use after installation."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

PATIENCE = 2.0  # s of compilation after which the message is printed
SENTENCE = "Compiling for this machine (only at the first use after installation): about half a minute."


@dataclass
class CompilationWatch:
    """Context manager that calls `say` once with a sentence if compilation takes longer than `patience` seconds in all.

    The context listens to numba's events. Only one thread compiles at a time. `depth` counts nested compilations.
    """

    say: Callable[[str], None]
    patience: float = field(default_factory=lambda: PATIENCE)
    spent: float = 0.0
    depth: int = 0
    begun: float = 0.0
    spoken: threading.Event = field(default_factory=threading.Event)
    timer: threading.Timer | None = None
    is_listening: bool = False
    is_over: bool = False

    def __enter__(self) -> None:
        from dynid.kernel_store import when_numba_is_loaded

        when_numba_is_loaded(self._listen)

    def _listen(self) -> None:
        """Start to listen to compilation events of numba, unless the context has ended before numba was loaded."""
        from numba.core import event

        if not self.is_over:
            event.Listener.register(CompilationWatch)
            event.register("numba:compile", self)
            self.is_listening = True

    def __exit__(self, *error: object) -> None:
        self.is_over = True
        if self.is_listening:
            from numba.core import event

            event.unregister("numba:compile", self)
        self.stop()

    def notify(self, event: Any) -> None:
        """Process an event of numba: the start or the end of the compilation of a function."""
        self.depth += 1 if event.is_start else -1
        if event.is_start and self.depth == 1:
            self.begun = time.perf_counter()
            if not self.spoken.is_set():
                self.timer = threading.Timer(max(self.patience - self.spent, 0.0), self._speak)
                self.timer.daemon = True
                self.timer.start()
        elif event.is_end and self.depth == 0:
            self.spent += time.perf_counter() - self.begun
            self.stop()

    def stop(self) -> None:
        """Suppress the message about compilation from now on."""
        if self.timer is not None:
            self.timer.cancel()

    def _speak(self) -> None:
        if not self.spoken.is_set():
            self.spoken.set()
            self.say(SENTENCE)
