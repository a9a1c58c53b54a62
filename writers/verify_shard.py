"""One shard: its size, schema message, blocks and end mark, and the hash of the whole file, in one pass from its start
to its end.

Where the journal is there its lines say where the blocks lie, so one broken header doesn't hide the blocks behind it;
otherwise the messages' headers lead from one to the next. Bytes are read, not mapped: a mapped page that the disk can't
deliver kills the process. One block at a time is in memory (32 MiB by default).
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from threading import Event

import pyarrow as pa
import xxhash

from ..core.schema import row_schema
from ..core.units import LatentSpec
from .block import END_MARK, schema_bytes
from .ipc_message import SCHEMA, HeaderError, read_header
from .lineage import Lineage
from .verify_block import BlockResult, check_block
from .verify_expect import ExpectedBlock, ExpectedShard
from .verify_identity import BlockPlace
from .verify_quick import bad_block, quick_block
from .verify_report import DamageCode, DamagedShard, Problem

_PIECE = 1 << 25
"""Bytes read at once where no block is."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ShardRules:
    """What the shards of one dataset have in common."""

    fingerprint: Lineage | None
    """Of the plans."""
    spec: LatentSpec | None
    names_by_hash: Mapping[str, str]
    """Of all shards: whose bytes these are, if not this one's."""
    quick: bool
    stop: Event = field(default_factory=Event)
    """Set when nobody waits for the outcome any more."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ShardResult:
    """What one shard turned out to be."""

    shard: ExpectedShard
    size: int = 0
    xxh3: str | None = None
    """Of the whole file; None if it was not read whole."""
    problems: tuple[Problem, ...] = ()
    """Of the shard as a whole; those of a block are with the block."""
    blocks: tuple[BlockResult, ...] = ()
    damaged: DamagedShard | None = None

    @property
    def all_problems(self) -> tuple[Problem, ...]:
        return (*self.problems, *(problem for block in self.blocks for problem in block.problems))


def check_shard(shard: ExpectedShard, rules: ShardRules, on_bytes: Callable[[int], None]) -> ShardResult:
    """Check one shard; ``on_bytes`` is told how many bytes were dealt with, in steps."""
    try:
        with open(shard.path, "rb", buffering=0) as file:
            return _ShardCheck(shard, file.fileno(), rules, on_bytes).run()
    except FileNotFoundError:
        if shard.is_open:  # it has got its final name since the journal was read
            return ShardResult(shard=shard)
        problem = Problem(code=DamageCode.SHARD_MISSING, shard=shard.name, message="the file is not there")
    except OSError as error:
        problem = Problem(code=DamageCode.SHARD_UNREADABLE, shard=shard.name, message=str(error))
    chunks = tuple(block.record.chunk for block in shard.blocks or () if block.record)
    return ShardResult(shard=shard, problems=(problem,), damaged=DamagedShard(name=shard.name, chunks=chunks))


def read_at(descriptor: int, offset: int, length: int) -> bytes:
    """``length`` bytes, fewer where the file ends. Raises OSError."""
    pieces: list[bytes] = []
    while length > 0 and (piece := os.pread(descriptor, min(length, 1 << 30), offset)):
        pieces.append(piece)
        offset, length = offset + len(piece), length - len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


class _ShardCheck:
    """The steps of ``check_shard``; ``problems`` and ``blocks`` grow as they go on."""

    def __init__(
        self, shard: ExpectedShard, descriptor: int, rules: ShardRules, on_bytes: Callable[[int], None]
    ) -> None:
        self._shard, self._descriptor, self._rules, self._on_bytes = shard, descriptor, rules, on_bytes
        self._size = os.fstat(descriptor).st_size
        self._problems: list[Problem] = []
        self._blocks: list[BlockResult] = []
        self._missing: list[ExpectedBlock] = []
        self._hash = xxhash.xxh3_128()
        self._is_whole = not (rules.quick or shard.is_open)
        """Every byte goes into the hash."""
        self._reached = 0
        """Bytes that went into the hash."""

    def run(self) -> ShardResult:
        self._check_size()
        start = self._schema_end()
        blocks = self._walked(start) if self._shard.blocks is None else self._shard.blocks
        for number, block in enumerate(blocks):
            if self._rules.stop.is_set():
                break
            self._check_block(number, block)
        self._check_missing()
        if self._shard.blocks is not None and not self._shard.is_open:
            self._check_order(start, self._shard.blocks)
            self._check_end_mark()
        self._check_rows()
        if not self._shard.is_open:
            self._pass_over(self._size)
        return self._result(self._hash.hexdigest() if self._is_whole else None)

    def _add(self, code: DamageCode, message: str, byte: int | None = None, block: int | None = None) -> None:
        self._problems.append(
            Problem(code=code, message=message, shard=self._shard.name, block=block, byte_offset=byte)
        )

    def _read(self, offset: int, length: int) -> bytes:
        return read_at(self._descriptor, offset, length)

    def _check_size(self) -> None:
        expected = self._shard.size
        if expected is not None and self._size != expected:
            message = f"it has {self._size:,} bytes, {expected:,} were written"
            self._add(DamageCode.SHARD_SIZE, message, min(self._size, expected))

    def _schema_end(self) -> int:
        """Where the schema message ends; where it should end, if it isn't one."""
        try:
            header = read_header(self._read, 0, self._size)
            if header is None or header.kind != SCHEMA:
                raise HeaderError(0, "the file doesn't begin with a schema message")
            schema = pa.ipc.read_schema(pa.py_buffer(self._read(0, header.end)))
        except (HeaderError, pa.ArrowException, OSError, ValueError) as error:
            self._add(DamageCode.SCHEMA, str(error), self._first_difference())
            return len(schema_bytes())
        if not schema.equals(row_schema(), check_metadata=True):
            self._add(DamageCode.SCHEMA, "its schema is not that of a row", self._first_difference())
        return header.end

    def _first_difference(self) -> int:
        """First byte that isn't what this version writes as the schema message; its length, if there is none."""
        expected = schema_bytes()
        found = self._read(0, len(expected))
        return next((at for at, (a, b) in enumerate(zip(found, expected, strict=False)) if a != b), len(found))

    def _walked(self, offset: int) -> tuple[ExpectedBlock, ...]:
        """The blocks that the headers lead to."""
        blocks: list[ExpectedBlock] = []
        try:
            while (header := read_header(self._read, offset, self._size)) is not None:
                blocks.append(ExpectedBlock(offset=offset, length=header.end - offset, record=None))
                offset = header.end
        except HeaderError as error:
            is_end = error.offset == self._size or error.offset == self._size - len(END_MARK)
            code = DamageCode.END_MARK if is_end else DamageCode.BLOCK_HEADER
            self._add(code, str(error), error.offset, None if is_end else len(blocks))
        else:
            if (behind := self._size - offset - len(END_MARK)) > 0:
                self._add(DamageCode.END_MARK, f"{behind:,} bytes stand behind it", offset + len(END_MARK))
        return tuple(blocks)

    def _check_block(self, number: int, block: ExpectedBlock) -> None:
        place = BlockPlace(shard=self._shard.name, number=number, offset=block.offset)
        if block.offset + block.length > self._size:
            self._missing.append(block)
        elif self._rules.quick:
            self._blocks.append(quick_block(self._read, self._size, place, block, self._rules.fingerprint))
        else:
            self._pass_over(block.offset)
            self._blocks.append(self._full_block(place, block))
            self._on_bytes(block.length)

    def _full_block(self, place: BlockPlace, block: ExpectedBlock) -> BlockResult:
        try:
            data = self._read(block.offset, block.length)
        except OSError as error:
            self._is_whole = False
            return bad_block(place, block, DamageCode.SHARD_UNREADABLE, str(error))
        self._is_whole = self._is_whole and block.offset == self._reached  # else blocks overlap
        if self._is_whole:
            self._hash.update(data)
            self._reached += len(data)
        return check_block(data, place, block.record, self._rules.fingerprint, self._rules.spec)

    def _check_missing(self) -> None:
        if self._missing:
            first, count = len(self._blocks), len(self._missing)
            which = "the block is" if count == 1 else f"blocks {first} to {first + count - 1} are"
            self._add(DamageCode.BLOCK_MISSING, f"{which} cut off", self._missing[0].offset, first)

    def _check_order(self, start: int, blocks: tuple[ExpectedBlock, ...]) -> None:
        for number, block in enumerate(blocks):
            if block.offset != start:
                message = f"it begins at {block.offset:,}, what stands before it ends at {start:,}"
                self._add(DamageCode.BLOCK_OFFSET, message, block.offset, number)
            start = block.offset + block.length

    def _check_end_mark(self) -> None:
        offset = self._size - len(END_MARK)
        if self._size == self._shard.size and self._read(offset, len(END_MARK)) != END_MARK:
            self._add(DamageCode.END_MARK, "the file doesn't end with the end mark", offset)

    def _check_rows(self) -> None:
        found = sum(block.num_rows for block in self._blocks)
        if self._shard.blocks is None and self._shard.rows is not None and found != self._shard.rows:
            self._add(DamageCode.SHARD_ROWS, f"it has {found:,} rows, {self._shard.rows:,} were written")

    def _pass_over(self, end: int) -> None:
        """Put bytes up to ``end`` that belong to no block into the hash."""
        while self._is_whole and self._reached < end:
            piece = self._read(self._reached, min(_PIECE, end - self._reached))
            if not piece:
                self._is_whole = False
            self._hash.update(piece)
            self._on_bytes(len(piece))
            self._reached += len(piece)

    def _result(self, xxh3: str | None) -> ShardResult:
        owner = self._rules.names_by_hash.get(xxh3, "") if xxh3 else ""
        if owner and owner != self._shard.name:
            return self._misnamed(owner, xxh3)
        as_written = xxh3 is not None and xxh3 == self._shard.xxh3
        if xxh3 is not None and self._shard.xxh3 is not None and not as_written:
            self._blame()
        if as_written:
            self._blocks = [replace(block, checksum_right=True) for block in self._blocks]
        chunks = self._damaged_chunks(as_written)
        is_damaged = not as_written and bool(
            self._problems or chunks or any(block.is_damaged for block in self._blocks)
        )
        return ShardResult(
            shard=self._shard,
            size=self._size,
            xxh3=xxh3,
            problems=tuple(self._problems),
            blocks=tuple(self._blocks),
            damaged=DamagedShard(name=self._shard.name, chunks=chunks) if is_damaged else None,
        )

    def _misnamed(self, owner: str, xxh3: str | None) -> ShardResult:
        """What is in it is looked at once it has its own name again."""
        message = f"it holds the bytes of {owner}; give it that name"
        problem = Problem(code=DamageCode.SHARD_MISNAMED, shard=self._shard.name, message=message)
        damaged = DamagedShard(name=self._shard.name, chunks=(), content_of=owner)
        return ShardResult(shard=self._shard, size=self._size, xxh3=xxh3, problems=(problem,), damaged=damaged)

    def _blame(self) -> None:
        """The hash of the whole file is wrong: find a part of it to name, if none has been named yet."""
        found = {problem.code for problem in self._problems}
        if any(block.is_damaged for block in self._blocks) or found & {DamageCode.SCHEMA, DamageCode.SHARD_SIZE}:
            return
        if (at := self._first_difference()) < len(schema_bytes()):
            self._add(DamageCode.SCHEMA, "its schema message is not as it was written", at)
        elif not found:
            self._add(DamageCode.SHARD_BYTES, "wrong checksum of the whole file", 0)

    def _damaged_chunks(self, as_written: bool) -> tuple[int, ...]:
        """With a wrong hash of the whole file every block without a checksum of its own is suspect."""
        wrong_hash = self._is_whole and self._shard.xxh3 is not None and not as_written
        chunks = [
            block.chunk for block in self._blocks if block.is_damaged or (wrong_hash and block.checksum_right is None)
        ]
        chunks += [block.record.chunk for block in self._missing if block.record]
        return tuple(chunk for chunk in chunks if chunk is not None)
