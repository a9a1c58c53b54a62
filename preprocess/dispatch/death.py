"""Why a worker process ended before it was told to, and which clips may be to blame."""

import signal
from dataclasses import dataclass

from .handle import WorkerHandle
from .messages import Failed
from .moves import ClipKey
from .watchdog import Verdict


@dataclass(frozen=True, kw_only=True, slots=True)
class Death:
    """What is known of it."""

    cause: str
    """For people."""
    external: bool
    """It was killed by SIGKILL: by a person, a scheduler, the kernel, or by us."""
    suspects: tuple[ClipKey, ...]
    """Clips that it was decoding, if a decoder can have killed it."""
    hung: ClipKey | None
    """The clip whose decoder did not return."""

    @property
    def clips(self) -> tuple[ClipKey, ...]:
        """The clips to name."""
        return (self.hung,) if self.hung else self.suspects


def examine(worker: WorkerHandle, last_words: Failed | None, verdict: Verdict | None) -> Death:
    """Look at a worker that has ended; ``verdict`` is why we killed it, if we did.

    An error of Python's and a stall outside the decoders are no clip's fault.
    """
    suspects = tuple((clip.chunk_id, clip.row) for clip in worker.board.in_flight())
    if last_words is not None or verdict is not None:
        suspects = ()
    return Death(
        cause=_cause(worker, last_words, verdict),
        external=worker.exit_code in (None, -signal.SIGKILL),
        suspects=suspects,
        hung=verdict.hung if verdict else None,
    )


def _cause(worker: WorkerHandle, last_words: Failed | None, verdict: Verdict | None) -> str:
    if last_words is not None:
        cause = last_words.text
    else:
        cause = verdict.cause if verdict else worker.describe_end()
    files = ", ".join(str(path) for path in worker.evidence())
    return f"{cause}; see {files}" if files else cause
