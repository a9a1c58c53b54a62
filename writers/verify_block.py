"""One block: is it a record batch of rows, by every rule that needs no other block.

The checksum proves that the bytes are those that were written; all else here proves that what was written is right,
and finds the column, row and byte where damage shows when the checksum only says that there is some. Bytes of unknown
state are first validated by Arrow in full (offsets, counts, UTF-8), so nothing below reads out of bounds.

40 to 60 us a row of 51 kB on one core, more than a third of it for the row digests.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..core.digest import Digests, digest_batch, hash_rows
from ..core.units import LatentSpec
from .block import hash_bytes
from .ipc_message import RECORD_BATCH, HeaderError, MessageHeader, parse_header
from .lineage import Lineage
from .records import BlockRecord
from .verify_arrow import ARROW_ERRORS, arrow_findings, read_rows
from .verify_findings import Finding
from .verify_identity import BlockPlace, facts_findings, facts_problems, header_chunk, header_problems
from .verify_padding import first_dirty_byte
from .verify_positions import position_findings
from .verify_report import DamageCode, Problem
from .verify_score import score_findings

_ITEM_COLUMNS = ("dataset_name", "item_name")
_ITEM_HASH_MASK = (1 << 64) - 1


@dataclass(frozen=True, kw_only=True, slots=True)
class BlockResult:
    """What one block turned out to be."""

    place: BlockPlace
    length: int
    """Bytes."""
    problems: tuple[Problem, ...] = ()
    checksum_right: bool | None = None
    """None if none is known."""
    chunk: int | None = None
    """Id of the chunk that it is, by the journal, else by what it says of itself."""
    num_rows: int = 0
    audio_seconds: float = 0.0
    digests: Digests | None = None
    item_hashes: npt.NDArray[np.uint64]
    """[rows] of (corpus, item); empty if they could not be read."""

    @property
    def is_damaged(self) -> bool:
        """Its bytes are not those that were written; without a checksum: something is wrong in it."""
        return bool(self.problems) if self.checksum_right is None else not self.checksum_right


NO_HASHES: npt.NDArray[np.uint64] = np.zeros(0, np.uint64)


def check_block(
    data: bytes, place: BlockPlace, record: BlockRecord | None, fingerprint: Lineage | None, spec: LatentSpec | None
) -> BlockResult:
    """Check the bytes of one block. ``record`` is its journal line, if there is one."""
    return _BlockCheck(data, place, record, fingerprint, spec).run()


class _BlockCheck:
    """The steps of ``check_block``; ``problems`` grows as they go on."""

    def __init__(
        self,
        data: bytes,
        place: BlockPlace,
        record: BlockRecord | None,
        fingerprint: Lineage | None,
        spec: LatentSpec | None,
    ) -> None:
        self._data, self._buffer, self._place = data, pa.py_buffer(data), place
        self._record, self._fingerprint, self._spec = record, fingerprint, spec
        self._problems: list[Problem] = []

    def run(self) -> BlockResult:
        checksum_right = hash_bytes(self._data) == self._record.xxh3 if self._record is not None else None
        header = self._header()
        batch = self._batch() if header is not None else None
        digests = self._rows(batch, header, bool(checksum_right)) if batch is not None and header is not None else None
        if checksum_right is False:
            self._problems.insert(0, self._bytes_problem(digests))
        readable = batch if digests is not None else None
        return BlockResult(
            place=self._place,
            length=len(self._data),
            problems=tuple(self._problems),
            checksum_right=checksum_right,
            chunk=self._record.chunk if self._record else header_chunk(header) if header else None,
            num_rows=header.num_rows if header else 0,
            audio_seconds=float(readable.column("audio_duration").to_numpy().sum()) if readable is not None else 0.0,
            digests=digests,
            item_hashes=_item_hashes(readable) if readable is not None else NO_HASHES,
        )

    def _add(self, code: DamageCode, message: str, *, byte: int | None = None) -> None:
        self._problems.append(
            Problem(
                code=code,
                message=message,
                shard=self._place.shard,
                block=self._place.number,
                byte_offset=self._place.offset if byte is None else byte,
            )
        )

    def _header(self) -> MessageHeader | None:
        """None if no record batch stands here; then nothing further can be read."""
        try:
            header = parse_header(self._data, self._place.offset)
        except HeaderError as error:
            self._add(DamageCode.BLOCK_HEADER, str(error))
            return None
        self._problems += header_problems(header, self._place, self._record, self._fingerprint)
        if header.end - header.offset != len(self._data):
            message = f"a message of {header.end - header.offset:,} bytes where {len(self._data):,} belong"
            self._add(DamageCode.BLOCK_HEADER, message)
            return None
        return header if header.kind == RECORD_BATCH else None

    def _batch(self) -> pa.RecordBatch | None:
        """None if it is not safe to read."""
        try:
            batch = read_rows(self._buffer)
        except ARROW_ERRORS as error:
            self._add(DamageCode.BLOCK_HEADER, f"Arrow can't read it: {error}")
            return None
        findings = list(arrow_findings(batch))
        for finding in findings:
            self._add_finding(finding)
        return None if findings else batch

    def _rows(self, batch: pa.RecordBatch, header: MessageHeader, checksum_right: bool) -> Digests:
        if batch.num_rows:
            for finding in (*position_findings(batch, self._spec), *score_findings(batch)):
                self._add_finding(finding)
            self._padding(batch)
        digests = digest_batch(batch)
        if self._record is not None and checksum_right and digests != self._record.digests:
            self._add(DamageCode.BLOCK_DIGEST, f"its rows' digest is {digests.full_hex}, not {self._record.digest}")
        if batch.num_rows and (self._record is None or self._problems):
            self._problems += facts_problems(batch, header, self._place)
            for finding in facts_findings(batch, header):
                self._add_finding(finding)
        return digests

    def _padding(self, batch: pa.RecordBatch) -> None:
        body = pa.ipc.read_message(self._buffer).body
        if body is not None and (address := first_dirty_byte(batch, body)) is not None:
            self._add(DamageCode.PADDING, "a byte between two buffers is not zero", byte=self._byte(address))

    def _add_finding(self, finding: Finding) -> None:
        others = f" (and {len(finding.rows) - 1:,} more rows of the block)" if len(finding.rows) > 1 else ""
        self._problems.append(
            Problem(
                code=finding.code,
                message=finding.message + others,
                shard=self._place.shard,
                block=self._place.number,
                row=int(finding.rows[0]) if len(finding.rows) else None,
                byte_offset=self._place.offset if finding.address is None else self._byte(finding.address),
                num_rows=len(finding.rows),
            )
        )

    def _byte(self, address: int) -> int:
        """Offset in the file of a byte in memory; the block's, if it was decompressed elsewhere."""
        inside = address - self._buffer.address
        return self._place.offset + (inside if 0 <= inside < len(self._data) else 0)

    def _bytes_problem(self, digests: Digests | None) -> Problem:
        last = self._place.offset + len(self._data) - 1
        message = f"wrong checksum of bytes {self._place.offset:,} to {last:,}"
        if digests is not None and self._record is not None and digests == self._record.digests:
            message += "; the rows themselves are as they were written"
        return Problem(
            code=DamageCode.BLOCK_BYTES,
            message=message,
            shard=self._place.shard,
            block=self._place.number,
            byte_offset=self._place.offset,
        )


def _item_hashes(batch: pa.RecordBatch) -> npt.NDArray[np.uint64]:
    return np.array([value & _ITEM_HASH_MASK for value in hash_rows(batch, _ITEM_COLUMNS)], np.uint64)
