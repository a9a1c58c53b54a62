"""What a verification says: typed problems with their place, what was looked at, which chunks to encode again."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from ..core.digest import Digests


class DamageCode(StrEnum):
    """What is wrong. docs/verify.md has the same table; a test compares the two."""

    # shards
    SHARD_MISSING = "shard_missing"
    """a shard that the journal or the metadata speaks of is not there"""
    SHARD_EXTRA = "shard_extra"
    """a file named like a shard that nothing speaks of"""
    SHARD_MISNAMED = "shard_misnamed"
    """the file holds another shard's bytes: names were exchanged"""
    SHARD_SIZE = "shard_size"
    """the file is shorter or longer than it was written"""
    SHARD_BYTES = "shard_bytes"
    """the checksum of the whole file is wrong, and nothing smaller could be blamed"""
    SHARD_ROWS = "shard_rows"
    """the shard has another number of rows than the metadata says"""
    SHARD_UNREADABLE = "shard_unreadable"
    """the disk or the permissions refuse"""
    SCHEMA = "schema"
    """the schema message is not that of a row, or not as it was written"""
    END_MARK = "end_mark"
    """the stream does not end with the end mark, or something stands behind it"""
    # blocks
    BLOCK_MISSING = "block_missing"
    """the file ends before the block does"""
    BLOCK_BYTES = "block_bytes"
    """the block's checksum is wrong"""
    BLOCK_HEADER = "block_header"
    """no record batch stands where the block should"""
    BLOCK_INVALID = "block_invalid"
    """its offsets, counts or text break Arrow's rules"""
    BLOCK_OFFSET = "block_offset"
    """the blocks do not follow each other without a gap"""
    BLOCK_IDENTITY = "block_identity"
    """it is another chunk, of another plan or of another format version than it should be"""
    BLOCK_ROWS = "block_rows"
    """it has another number of rows than the journal says, or none"""
    BLOCK_DIGEST = "block_digest"
    """the sum of its rows' digests is not the journal's"""
    BLOCK_TWICE = "block_twice"
    """its chunk is in another block, too"""
    PADDING = "padding"
    """bytes between its buffers are not zero"""
    FACTS = "facts"
    """the facts of its rows can't be read, or are not one for each row"""
    # rows
    ROW_NULL = "row_null"
    """a null"""
    ROW_LENGTH = "row_length"
    """packed columns that are not all total_length long"""
    ROW_SHAPE = "row_shape"
    """latents that are not [L, P, D]"""
    ROW_MASK = "row_mask"
    """masks that contradict each other, or are not prompt, patches, end"""
    ROW_LABEL = "row_label"
    """labels other than one 1 on the last patch"""
    ROW_TOKEN = "row_token"
    """a token id below 0, or not audio_start, 0 and audio_end where they belong"""
    ROW_DURATION = "row_duration"
    """a duration that is not finite, negative, or not that of the patches"""
    ROW_SCORE = "row_score"
    """a pitch, note, tempo, word index or list length against the rules of a score"""
    ROW_IDENTITY = "row_identity"
    """an empty item, corpus or prompt"""
    ROW_ANNOTATION = "row_annotation"
    """identity and annotation are not those that were hashed when the row was made"""
    LATENT_NOT_FINITE = "latent_not_finite"
    """NaN or infinite latents"""
    LATENT_ZERO = "latent_zero"
    """all patches of a row are zeros"""
    LATENT_STRAY = "latent_stray"
    """latents that are not zero where there is no patch"""
    DUPLICATE_ITEM = "duplicate_item"
    """the same (corpus, item) has two rows"""
    # metadata
    STATE = "state"
    """state.json is missing, unreadable, or not what a run writes of these shards"""
    DATASET_INFO = "dataset_info"
    """dataset_info.json is missing, unreadable, or says something else than the shards"""
    PROVENANCE = "provenance"
    """provenance.json is missing, unreadable, or says something else than the shards"""
    SKIPPED = "skipped"
    """skipped.jsonl is missing, unreadable, or counts otherwise than provenance.json"""
    JOURNAL = "journal"
    """the journal is gone while .prep is there, or a line of it is damaged"""
    INDEX = "index"
    """index.arrow is missing, damaged, or says something else than the shards"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """One thing that is wrong, and where."""

    code: DamageCode
    message: str
    shard: str = ""
    """File name; of a metadata file or a journal where no shard is concerned."""
    block: int | None = None
    """Position in its shard."""
    row: int | None = None
    """Position in its block of the first row concerned."""
    byte_offset: int | None = None
    """In the file, of the first byte concerned: of the value, else of the block."""
    num_rows: int = 0
    """Rows of the block concerned by the same thing; 0 if it is not about rows."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DamagedShard:
    """A shard that is not as it was written."""

    name: str
    chunks: tuple[int, ...]
    """Ids of the chunks to encode again, as far as they are known."""
    content_of: str = ""
    """The shard whose bytes these are: renaming is the cure, and nothing needs encoding."""


@dataclass(frozen=True, kw_only=True)
class VerifyReport:
    """The outcome of a verification."""

    folder: str
    quick: bool
    """Sizes and headers only."""
    finished: bool
    """There is a state.json; otherwise what a run has committed so far was looked at."""
    checksums: str
    """Where they come from: "journal" (per block), "provenance" (per shard) or "none"."""
    plans: tuple[str, ...]
    """Fingerprints of the plans that made the dataset, oldest first: more than one if it was extended."""
    problems: tuple[Problem, ...]
    num_shards: int
    num_blocks: int
    num_rows: int
    num_bytes: int
    digests: Digests | None
    """Of the rows that could be read; None after a quick verification."""
    damaged: tuple[DamagedShard, ...]

    @cached_property
    def damaged_chunks(self) -> tuple[int, ...]:
        """Chunks to encode again, over all shards."""
        return tuple(sorted({chunk for shard in self.damaged for chunk in shard.chunks}))

    @cached_property
    def counts(self) -> Mapping[str, int]:
        """Problems by code, the most frequent first."""
        return dict(Counter(str(problem.code) for problem in self.problems).most_common())
