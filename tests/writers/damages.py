"""Every damage that docs/verify.md lists, done to a dataset of tests/writers/datasets.py.

Each acts on block 1 of shard 1 (chunk 3) where it concerns a block.
"""

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from latentprep.core.index import open_index
from latentprep.core.paths import OutputPaths
from latentprep.writers.index_file import BlockLine, IndexBuilder, IndexedRows
from latentprep.writers.index_folder import index_folder
from latentprep.writers.ipc_message import MessageHeader, walk_headers
from latentprep.writers.verify_arrow import read_rows
from latentprep.writers.verify_index import line_of

from .builders import SPEC

Damage = Callable[[OutputPaths], None]

SHARD, OTHER_SHARD, BLOCK, CHUNK = "data-r0-00001.arrow", "data-r0-00002.arrow", 1, 3

LAST_PATCH = -4 * SPEC.patch_size * SPEC.latent_dim
"""First byte of the last row's last patch, counted from the end of the latents; the patch of the end mark follows."""


def headers(path: Path) -> list[MessageHeader]:
    """Schema message and blocks."""
    data = path.read_bytes()
    return list(walk_headers(lambda offset, length: data[offset : offset + length], len(data)))


def block_header(paths: OutputPaths) -> MessageHeader:
    return headers(paths.root / SHARD)[1 + BLOCK]


def flip(path: Path, offset: int, bits: int = 0x01) -> None:
    """Flip ``bits`` of one byte."""
    with open(path, "r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ bits]))


def in_shard(offset: int, bits: int = 0x01) -> Damage:
    """A flip at an offset from the beginning, or from the end if it is negative."""

    def damage(paths: OutputPaths) -> None:
        path = paths.root / SHARD
        flip(path, offset % path.stat().st_size, bits)

    return damage


def in_header(find: Callable[[bytes], int], bits: int = 0x01) -> Damage:
    """A flip in the header of the block, where ``find`` says."""

    def damage(paths: OutputPaths) -> None:
        header = block_header(paths)
        data = (paths.root / SHARD).read_bytes()[header.offset : header.body_offset]
        flip(paths.root / SHARD, header.offset + find(data), bits)

    return damage


def value_offset(paths: OutputPaths, column: str, buffer: int, byte: int) -> int:
    """Offset in the shard of a byte of one of a column's buffers (as ``pa.Array.buffers`` numbers them)."""
    header = block_header(paths)
    data = pa.py_buffer((paths.root / SHARD).read_bytes()[header.offset : header.end])
    found = read_rows(data).column(column).buffers()[buffer]
    assert found is not None
    assert -found.size <= byte < found.size
    return header.offset + found.address - data.address + byte % found.size


def in_column(column: str, buffer: int, byte: int, bits: int) -> Damage:
    """A flip in one of a column's buffers; a negative ``byte`` counts from its end."""
    return lambda paths: flip(paths.root / SHARD, value_offset(paths, column, buffer, byte), bits)


def overwritten(column: str, buffer: int, byte: int, data: bytes) -> Damage:
    """As ``in_column``, with new bytes in place of a flip."""

    def damage(paths: OutputPaths) -> None:
        with open(paths.root / SHARD, "r+b") as file:
            file.seek(value_offset(paths, column, buffer, byte))
            file.write(data)

    return damage


def in_padding(paths: OutputPaths) -> None:
    """has_score is the last column: 3 bits in one byte, and 7 bytes of nothing."""
    flip(paths.root / SHARD, value_offset(paths, "has_score", 1, 0) + 3)


def cut(find: Callable[[OutputPaths], int]) -> Damage:
    return lambda paths: os.truncate(paths.root / SHARD, find(paths))


def append(paths: OutputPaths) -> None:
    with open(paths.root / SHARD, "ab") as file:
        file.write(b"\0" * 64)


def zeros(paths: OutputPaths) -> None:
    """What a power cut leaves of a page that was never written."""
    header = block_header(paths)
    with open(paths.root / SHARD, "r+b") as file:
        file.seek(header.body_offset)
        file.write(bytes(header.body_length))


def swap_shards(paths: OutputPaths) -> None:
    one, other, spare = paths.root / SHARD, paths.root / OTHER_SHARD, paths.root / "spare"
    one.rename(spare)
    other.rename(one)
    spare.rename(other)


def edit(name: str, change: Callable[[dict[str, Any]], object]) -> Damage:
    """Change a JSON file of the output folder."""

    def damage(paths: OutputPaths) -> None:
        content = json.loads((paths.root / name).read_text())
        change(content)
        (paths.root / name).write_text(json.dumps(content))

    return damage


def remove(name: str) -> Damage:
    def damage(paths: OutputPaths) -> None:
        path = paths.root / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()

    return damage


def write(name: str, text: str) -> Damage:
    return lambda paths: (paths.root / name).write_text(text) and None


def add_line(paths: OutputPaths) -> None:
    line = paths.skipped.read_text().splitlines()[0]
    with open(paths.skipped, "a") as file:
        file.write(line + "\n")


def journal(paths: OutputPaths) -> Path:
    return next(paths.journal_dir.glob("*.jsonl"))


def in_journal(line: int) -> Damage:
    def damage(paths: OutputPaths) -> None:
        lines = journal(paths).read_bytes().split(b"\n")
        flip(journal(paths), sum(len(text) + 1 for text in lines[:line]) + 60)

    return damage


def unfinished(damage: Damage) -> Damage:
    """A run that hasn't written its metadata yet."""

    def both(paths: OutputPaths) -> None:
        for path in (paths.state, paths.dataset_info, paths.provenance, paths.skipped):
            path.unlink()
        damage(paths)

    return both


def first_row_again(paths: OutputPaths) -> None:
    """A whole shard copied under a new name, and taken into the list."""
    shutil.copy(paths.root / SHARD, paths.root / "data-r0-00003.arrow")
    edit("state.json", lambda state: state["_data_files"].append({"filename": "data-r0-00003.arrow"}))(paths)


def first(state: dict[str, Any]) -> dict[str, Any]:
    return state["_data_files"][0]


def in_index(change: Callable[[BlockLine], BlockLine]) -> Damage:
    """A whole index whose lines say something else of the damaged shard's block."""

    def damage(paths: OutputPaths) -> None:
        index = open_index(paths.index)
        builder = IndexBuilder()
        for block in range(index.num_blocks):
            line = line_of(index, block)
            builder.add(change(line) if line.shard == SHARD and line.chunk == CHUNK else line)
        header = index.header
        rows = IndexedRows(schema=header.schema, patch_size=header.patch_size, latent_dim=header.latent_dim)
        builder.write(paths.index, header.shards, header.fingerprint, rows)

    return damage


def another(column: str, value: object) -> Callable[[BlockLine], BlockLine]:
    """The first row's value of ``column`` is another one."""

    def change(line: BlockLine) -> BlockLine:
        rows = line.rows.to_pylist()
        rows[0][column] = value
        return replace(line, rows=pa.RecordBatch.from_pylist(rows, schema=line.rows.schema))

    return change


def of_fewer_shards(paths: OutputPaths) -> None:
    """The index that a part of the dataset would have."""
    spare = paths.state.read_text()
    edit("state.json", lambda state: state["_data_files"].pop())(paths)
    index_folder(paths.root)
    paths.state.write_text(spare)


SHARD_DAMAGES: dict[str, Damage] = {
    "a byte of the schema message's length": in_shard(5),
    "a byte of the schema message's columns": in_shard(3600),
    "a byte of the schema message's features": in_shard(300),
    "a byte of a block's continuation mark": in_header(lambda data: 0),
    "a byte of a block header's length": in_header(lambda data: 4),
    "a byte of a block header's number of rows": in_header(lambda data: data.index(b"\x03\0\0\0\0\0\0\0"), 0x08),
    "a byte of a block header's chunk id": in_header(lambda data: data.index(b"latentprep.chunk") - 8, 0x01),
    "a byte of a block header's facts": in_header(lambda data: data.index(b"latentprep.facts") - 200, 0x02),
    "a list's offset": in_column("packed_text_tokens", 1, 4, 0x01),
    "a text's offset": in_column("item_name", 1, 5, 0x40),
    "a token id: negative": in_column("packed_text_tokens", 3, 3, 0x80),
    "a token id: another one": in_column("packed_text_tokens", 3, 0, 0x01),
    "a mask": in_column("audio_mask", 3, 0, 0x01),
    "a label": in_column("labels", 3, 0, 0x01),
    "a latent: infinite": overwritten("audio_feats", 7, LAST_PATCH, b"\x00\x7c"),
    "a latent: another value": in_column("audio_feats", 7, LAST_PATCH, 0x01),
    "a latent of the prompt": in_column("audio_feats", 7, 0, 0x01),
    "audio_duration": in_column("audio_duration", 1, 6, 0x01),
    "estimated_duration": in_column("estimated_duration", 1, 0, 0x01),
    "total_length": in_column("total_length", 1, 0, 0x01),
    "text_token_count": in_column("text_token_count", 1, 0, 0x40),
    "item_name: another letter": in_column("item_name", 2, 0, 0x01),
    "item_name: no UTF-8": in_column("item_name", 2, 0, 0x80),
    "svs_prompt": in_column("svs_prompt", 2, 3, 0x01),
    "a word": in_column("word", 4, -1, 0x01),
    "a pitch out of range": in_column("pitch", 3, 7, 0x80),
    "a pitch: another one": in_column("pitch", 3, 0, 0x01),
    "a note value": in_column("note", 4, 2, 0x01),
    "a word index": in_column("pitch2word", 3, 0, 0x40),
    "a word's seconds": in_column("word_dur", 3, 7, 0x80),
    "bpm": in_column("bpm", 1, 2, 0x01),
    "has_score": in_column("has_score", 1, 0, 0x01),
    "a padding byte between buffers": in_padding,
    "a byte of the end mark": in_shard(-1),
    "a block's body full of zeros": zeros,
    "cut at a block's border": cut(lambda paths: block_header(paths).offset),
    "cut in mid block": cut(lambda paths: block_header(paths).end - 1000),
    "cut in a block's header": cut(lambda paths: block_header(paths).offset + 6),
    "cut in the schema message": cut(lambda paths: 1000),
    "cut before the end mark": cut(lambda paths: block_header(paths).end),
    "cut to nothing": cut(lambda paths: 0),
    "bytes behind the end mark": append,
}
"""Damages of one shard; all of block ``BLOCK`` where they are of a block."""

FOLDER_DAMAGES: dict[str, Damage] = {
    "a shard is missing": remove(SHARD),
    "an extra shard": lambda paths: shutil.copy(paths.root / SHARD, paths.root / "data-r7-00000.arrow") and None,
    "two shards' names exchanged": swap_shards,
    "state.json: deleted": remove("state.json"),
    "state.json: cut": write("state.json", '{"_data_files": ['),
    "state.json: a shard left out": edit("state.json", lambda state: state["_data_files"].pop()),
    "state.json: a shard twice": edit("state.json", lambda state: state["_data_files"].append(first(state))),
    "state.json: another order": edit("state.json", lambda state: state["_data_files"].reverse()),
    "state.json: a copied shard added": first_row_again,
    "state.json: another fingerprint": edit("state.json", lambda state: state.update(_fingerprint="0" * 16)),
    "state.json: a column selection": edit("state.json", lambda state: state.update(_format_columns=["bpm"])),
    "dataset_info.json: deleted": remove("dataset_info.json"),
    "dataset_info.json: no JSON": write("dataset_info.json", "[1"),
    "dataset_info.json: number of rows": edit(
        "dataset_info.json", lambda info: info["splits"]["train"].update(num_examples=7)
    ),
    "dataset_info.json: a feature's type": edit(
        "dataset_info.json", lambda info: info["features"]["bpm"].update(dtype="int32")
    ),
    "provenance.json: deleted": remove("provenance.json"),
    "provenance.json: no JSON": write("provenance.json", "{"),
    "provenance.json: rows written": edit("provenance.json", lambda content: content["counts"].update(written=99)),
    "provenance.json: clips skipped": edit("provenance.json", lambda content: content["counts"]["skipped"].clear()),
    "provenance.json: hours": edit("provenance.json", lambda content: content["counts"].update(audio_seconds=3.0)),
    "provenance.json: digest": edit("provenance.json", lambda content: content.update(digest="1" * 32)),
    "provenance.json: fingerprint": edit("provenance.json", lambda content: content.update(fingerprint="ffff")),
    "provenance.json: hop length": edit("provenance.json", lambda content: content["encoder"].update(hop_length=512)),
    "provenance.json: a shard's hash": edit(
        "provenance.json", lambda content: content["shards"][1].update(xxh3="0" * 32)
    ),
    "index.arrow: deleted": remove("index.arrow"),
    "index.arrow: a flipped byte": lambda paths: flip(paths.index, paths.index.stat().st_size // 2),
    "index.arrow: cut": lambda paths: os.truncate(paths.index, paths.index.stat().st_size // 2),
    "index.arrow: of a part of the shards": of_fewer_shards,
    "index.arrow: a block elsewhere": in_index(lambda line: replace(line, offset=line.offset + 8)),
    "index.arrow: a block's checksum": in_index(lambda line: replace(line, checksum="0" * 32)),
    "index.arrow: a row's length": in_index(another("tokens", 99)),
    "index.arrow: a row's frames": in_index(another("frames", 98)),
    "index.arrow: a row's song": in_index(another("song", "x")),
    "skipped.jsonl: deleted": remove("skipped.jsonl"),
    "skipped.jsonl: a line more": add_line,
    "skipped.jsonl: no JSON": write("skipped.jsonl", "x\n"),
}

JOURNAL_DAMAGES: dict[str, Damage] = {
    "a byte of a journal line of a block": in_journal(2),
    "a byte of a journal's first line": in_journal(0),
    "the journal of a finished run deleted": remove(".prep/journal"),
    "the journal of an unfinished run deleted": unfinished(remove(".prep/journal")),
    "an unfinished run: a shard is missing": unfinished(remove(SHARD)),
    "an unfinished run: a latent": unfinished(in_column("audio_feats", 7, LAST_PATCH, 0x01)),
}
"""Damages that only exist while ``.prep`` is there."""
