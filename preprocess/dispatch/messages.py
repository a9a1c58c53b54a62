"""The messages between the parent and its workers. Nothing else crosses the border between processes.

Each encodes to fewer than PIPE_BUF bytes, so that a pipe takes it whole or not at all.
"""

from multiprocessing.connection import Connection
from typing import Literal

import msgspec

from ...core.errors import PrepError

MAX_BYTES = 4000
"""PIPE_BUF is 4,096 on Linux; the pipe adds a length of 4 bytes."""
MAX_TEXT = 2800
"""Bytes kept of a failure's text."""
MAX_ADVICE = 500
"""Bytes kept of its reason, and of what to do about it."""


FailureKind = Literal["start", "disk", "bug"]


class Excluded(msgspec.Struct, frozen=True, array_like=True):
    """A clip that is not to be decoded again."""

    position: int
    """Row of the clip in its chunk."""
    code: str
    message: str


class Task(msgspec.Struct, frozen=True, array_like=True):
    """One chunk to do."""

    chunk_id: int
    singly: tuple[int, ...] = ()
    """Clips (rows of the chunk) that were being decoded when a worker died: decode them one at a time, nothing beside."""
    excluded: tuple[Excluded, ...] = ()
    """Clips that killed a worker again: skipped with this code."""


class Ready(msgspec.Struct, frozen=True, tag=True):
    """The encoder is loaded."""

    device: str
    load_seconds: float


class Measured(msgspec.Struct, frozen=True, tag=True):
    """What the precision of this device costs."""

    precision_error: float
    """Largest relative difference from strict float32."""


class Adapted(msgspec.Struct, frozen=True, tag=True):
    """The worker decodes with another number of threads, or reads another number of chunks ahead."""

    threads: int
    chunks_ahead: int
    trial: bool
    """To be seen whether it is faster; False: it was not, and this is what was before."""


class Taken(msgspec.Struct, frozen=True, tag=True):
    """The worker has begun to read this chunk's audio; its inbox has room for one more task."""

    chunk_id: int


class Committed(msgspec.Struct, frozen=True, tag=True):
    """The chunk's block and journal line are on disk."""

    chunk_id: int
    num_rows: int
    num_skipped: int


class HandedBack(msgspec.Struct, frozen=True, tag=True):
    """The worker is draining and gives this chunk back."""

    chunk_id: int


class Closed(msgspec.Struct, frozen=True, tag=True):
    """A shard has its final name."""

    name: str
    num_rows: int
    num_bytes: int


class Failed(msgspec.Struct, frozen=True, tag=True):
    """The worker ends with an error; the three parts of its text may be cut."""

    kind: FailureKind
    what: str
    why: str = ""
    fix: str = ""

    @property
    def text(self) -> str:
        """All three parts."""
        return str(PrepError(self.what, why=self.why, fix=self.fix))

    @classmethod
    def of(cls, kind: FailureKind, error: PrepError) -> "Failed":
        """The message that an error of ours becomes."""
        return cls(kind, clipped(error.what), clipped(error.why, MAX_ADVICE), clipped(error.fix, MAX_ADVICE))


class Finished(msgspec.Struct, frozen=True, tag=True):
    """All is committed and closed; the worker ends with exit code 0."""


class Remark(msgspec.Struct, frozen=True, tag=True):
    """A line for people."""

    text: str
    topic: str = ""
    """Of the remarks of one topic, the run tells the first alone, whichever worker makes it."""


FromWorker = Ready | Measured | Adapted | Taken | Committed | HandedBack | Closed | Failed | Finished | Remark

_decoder = msgspec.msgpack.Decoder(FromWorker)


def clipped(text: str, limit: int = MAX_TEXT) -> str:
    """``text`` cut in the middle to at most ``limit`` bytes; its end says more than its begin."""
    raw = text.encode("utf-8", "replace")
    if len(raw) <= limit:
        return raw.decode()
    head, tail = raw[: limit // 4], raw[-(3 * limit // 4) + 8 :]
    return head.decode("utf-8", "ignore") + " ... " + tail.decode("utf-8", "ignore")


def encode(message: FromWorker) -> bytes:
    """Bytes of a message."""
    raw = msgspec.msgpack.encode(message)
    assert len(raw) <= MAX_BYTES, f"message of {len(raw)} bytes: {message!r:.200}"
    return raw


def receive(pipe: Connection) -> FromWorker:
    """The next message of a worker. Raises EOFError when it is gone and all it sent has been read."""
    return _decoder.decode(pipe.recv_bytes(MAX_BYTES))
