"""The lines of all journals of one plan, sorted by what they are about."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from ..core.paths import WHOLE, Part
from .journal import JournalFile
from .records import BlockRecord, ClosedRecord, DroppedRecord, JournalHeader, SupersededRecord

ShardKey = tuple[int, str, int]
"""(rank, run id, number as opened): what lines call a shard by."""


@dataclass(frozen=True, slots=True)
class JournalLines:
    """Where two lines speak of one thing, the later one is kept; a salvage's journal is later than every worker's."""

    headers: dict[tuple[int, str], JournalHeader] = field(default_factory=dict)
    """By (rank, run id)."""
    blocks: dict[ShardKey, dict[int, BlockRecord]] = field(default_factory=dict)
    """By shard and offset."""
    without_rows: list[tuple[int, BlockRecord]] = field(default_factory=list)
    """(rank, line) of chunks without rows."""
    closed: dict[ShardKey, ClosedRecord] = field(default_factory=dict)
    dropped: set[ShardKey] = field(default_factory=set)
    superseded: set[int] = field(default_factory=set)
    """Chunks whose blocks don't count any more."""
    extensions: set[str] = field(default_factory=set)
    """Plans of whose superseded chunks a line speaks."""

    def part(self, key: ShardKey) -> Part:
        """Part of the plan that a shard belongs to."""
        header = self.headers.get(key[:2])
        return Part(header.part, header.parts) if header else WHOLE


def sort_lines(files: Iterable[JournalFile]) -> JournalLines:
    """Sort the lines of journals; those without a readable header are passed over."""
    lines = JournalLines()
    with_header = [(file.header, file) for file in files if file.header is not None]
    for header, file in sorted(with_header, key=lambda pair: _age(pair[0])):
        lines.headers[header.rank, header.run_id] = header
        _add(lines, header, file)
    return lines


def _add(lines: JournalLines, header: JournalHeader, file: JournalFile) -> None:
    for record in file.records:
        match record:
            case BlockRecord(number=None):
                lines.without_rows.append((header.rank, record))
            case BlockRecord(number=int(number)):
                lines.blocks.setdefault((header.rank, header.run_id, number), {})[record.offset] = record
            case ClosedRecord():
                lines.closed[record.rank, record.run_id, record.number] = record
            case DroppedRecord():
                lines.dropped.add((record.rank, record.run_id, record.number))
            case SupersededRecord():
                lines.superseded.update(record.chunks)
                lines.extensions.add(record.plan)


def _age(header: JournalHeader) -> tuple[bool, float, int, str]:
    return (header.salvage, header.started, header.rank, header.run_id)
