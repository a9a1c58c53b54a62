"""``StoredFacts``: what committed blocks say of their rows, read out of the blocks' headers and nothing else.

A header holds 45 to 80 bytes a row, so the facts of a million rows are some 60 MB to read, wherever the latents lie.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from ..writers.block import block_metadata
from ..writers.ipc_message import HeaderError, read_header
from ..writers.ledger import CommittedBlock
from .rows.facts import decode_facts


@dataclass(frozen=True, slots=True)
class StoredFacts:
    """Of the blocks ``done`` (by chunk id) in the folder ``root``."""

    root: Path
    done: Mapping[int, CommittedBlock]

    def audio_hashes(self, chunk: int, num_clips: int) -> list[str | None]:
        """Hash of the audio of each clip of a chunk; None for a clip without a row, or whose facts can't be read."""
        hashes: list[str | None] = [None] * num_clips
        block = self.done.get(chunk)
        if block is None or not block.record.rows:
            return hashes
        skipped = {clip.position for clip in block.record.skipped}
        rows = [position for position in range(num_clips) if position not in skipped]
        facts = block_facts(self.root / block.shard, block.record.offset)
        if facts is not None and facts.num_rows == len(rows):
            for position, value in zip(rows, facts.column("audio_hash").to_pylist(), strict=True):
                hashes[position] = value
        return hashes


def block_facts(shard: Path, offset: int) -> pa.Table | None:
    """The table of facts of the block at ``offset`` of ``shard``; None if it can't be read."""
    try:
        with open(shard, "rb", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            header = read_header(lambda at, length: os.pread(file.fileno(), length, at), offset, size)
        if header is None:
            return None
        metadata = block_metadata(pa.KeyValueMetadata(dict(header.custom_metadata)))
        return decode_facts(metadata.facts)
    except (OSError, HeaderError, ValueError, pa.ArrowException):
        return None
