"""``README.md`` of a dataset: what it is, how to load it, what was left out. The front matter is for the Hub.

It names ``data-*.arrow`` as the data files: without that, ``load_dataset`` would take index.arrow for rows.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..core.digest import Digests
from ..core.paths import OutputPaths
from ..core.schema import COLUMNS
from ..core.units import LatentSpec
from .atomic import atomic_write
from .skipped import by_code

_SHAPES = {
    "packed_text_tokens": "[L] prompt ids, 0 per patch, then the end mark 102",
    "audio_feats": "[L, P, D] zeros for the prompt, the latent patches, one patch of zeros",
    "text_mask": "[L] 1 on the prompt and on the last position",
    "audio_mask": "[L] 1 on patches",
    "loss_mask": "[L] 1 on patches",
    "labels": "[L] 1 on the last patch",
    "audio_duration": "seconds, after padding to whole patches",
    "estimated_duration": "seconds by the score; by the audio where there is none",
    "text_token_count": "notes that belong to a word; words where there is no score",
    "total_length": "L",
    "svs_prompt": "the prompt as text",
    "bpm": "quarters per minute; 0 without a score",
    "word": "lyric words, rests included",
    "pitch": "MIDI pitch per note, 0 = rest",
    "pitch_dur": "seconds per note, as annotated",
    "note": "note value per note",
    "pitch2word": "index of each note's word",
    "word_dur": "seconds per word, as annotated",
    "has_score": "false: words only",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class CardFacts:
    """What the card says."""

    corpora: Mapping[str, int]
    """Rows by corpus."""
    audio_seconds: float
    num_shards: int
    num_bytes: int
    skipped: Mapping[str, int]
    """Clips without a row, by code."""
    warnings: Mapping[str, int]
    """Rows with a warning, by code."""
    digests: Digests
    encoder: str
    """Name and hash of the VAE."""
    spec: LatentSpec
    tool_version: str


def write_card(paths: OutputPaths, facts: CardFacts) -> None:
    """Raises DiskError if the disk refuses."""
    atomic_write(paths.card, card_text(facts))


def card_text(facts: CardFacts) -> str:
    """The card as Markdown with a YAML front matter."""
    sections = [_front_matter(), _summary(facts), _loading(), _columns(facts.spec), _rows(facts), _left_out(facts)]
    return "\n\n".join(sections) + "\n"


def _front_matter() -> str:
    return "\n".join(
        [
            "---",
            "configs:",
            "- config_name: default",
            "  data_files:",
            "  - split: train",
            '    path: "data-*.arrow"',
            "tags:",
            "- singing-voice-synthesis",
            "- audio-latents",
            "---",
        ]
    )


def _summary(facts: CardFacts) -> str:
    hours = facts.audio_seconds / 3600
    return (
        "# Singing corpora as audio-VAE latents\n\n"
        f"{facts.digests.num_rows:,} rows, {hours:,.2f} hours of singing, {facts.num_bytes:,} bytes in "
        f"{facts.num_shards:,} shards. Made by latentprep {facts.tool_version}.\n\n"
        f"- VAE: {facts.encoder}\n"
        f"- Input: {facts.spec.sample_rate:,} Hz, {facts.spec.hop_length} samples per latent frame, "
        f"{facts.spec.frame_rate:g} frames per second\n"
        f"- Digest of all rows: `{facts.digests.full_hex}` over {facts.digests.num_rows:,} rows\n"
        f"- Digest without latents: `{facts.digests.content_hex}`"
    )


def _loading() -> str:
    return (
        "## Loading\n\n"
        "```python\n"
        "from datasets import load_from_disk\n\n"
        'rows = load_from_disk("path/to/this/folder")\n'
        "```\n\n"
        "Row N is the N-th row of the shards in the order of `state.json`. Every clip that has no row is listed in\n"
        "`skipped.jsonl` with its reason; how the dataset was made is in `provenance.json`."
    )


def _columns(spec: LatentSpec) -> str:
    rows = [[f"`{name}`", str(kind).replace("item: ", ""), _SHAPES.get(name, "")] for name, kind in COLUMNS.items()]
    note = f"L positions of a row, P = {spec.patch_size} frames per patch, D = {spec.latent_dim} values per frame."
    return "\n\n".join(["## Columns", note, _table(["column", "type", "value"], rows)])


def _rows(facts: CardFacts) -> str:
    rows = [[_cell(name), f"{count:,}"] for name, count in sorted(facts.corpora.items())]
    return "## Corpora\n\n" + _table(["corpus", "rows"], rows)


def _left_out(facts: CardFacts) -> str:
    parts = ["## Skipped clips", _counts("reason", "clips", facts.skipped) or "None."]
    if facts.warnings:
        parts += ["## Rows with a warning", _counts("warning", "rows", facts.warnings)]
    return "\n\n".join(parts)


def _counts(what: str, unit: str, counts: Mapping[str, int]) -> str:
    rows = [[f"`{code}`", f"{count:,}"] for code, count in by_code(counts).items()]
    return _table([what, unit], rows) if rows else ""


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _cell(text: str) -> str:
    """Corpus names are free text; a bar or a line end would break the table."""
    return json.dumps(text, ensure_ascii=False)[1:-1].replace("|", "\\|")
