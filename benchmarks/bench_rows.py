"""How much faster do latents become an Arrow column by offsets over one flat buffer than by nested lists?

Method: a block of 256 clips of 8 s (50 patches of [4, 64] float16 behind a prompt of 40 tokens), the column ``audio_feats`` alone
for the naive way (zeros before and after, ``tolist()``, ``pa.array``), all 23 columns for ours; equal arrays are
asserted first. Command: ``python benchmarks/bench_rows.py``. Result: benchmarks/results/rows_2core_202612.md.
"""

import numpy as np
import pyarrow as pa
from side_by_side import compare

from latentprep.core.schema import COLUMNS
from latentprep.core.units import LatentSpec
from latentprep.preprocess.rows.assemble import assemble

SPEC = LatentSpec(sample_rate=16000, hop_length=640, patch_size=4, latent_dim=64)
CLIPS, PATCHES, PROMPT = 256, 50, 40


def main() -> None:
    rng = np.random.default_rng(0)
    latents = [rng.standard_normal((PATCHES * 4, 64)).astype(np.float16) for _ in range(CLIPS)]
    prompts = [np.arange(PROMPT, dtype=np.int32) for _ in range(CLIPS)]
    annotations = pa.record_batch(
        {
            **{name: pa.array(["x"] * CLIPS) for name in ("item_name", "song_name", "song_folder", "dataset_name")},
            "word": pa.array([["la"]] * CLIPS, COLUMNS["word"]),
            "pitch": pa.array([[60]] * CLIPS, COLUMNS["pitch"]),
            "pitch_dur": pa.array([[]] * CLIPS, COLUMNS["pitch_dur"]),
            "note": pa.array([["<NOTE_4>"]] * CLIPS, COLUMNS["note"]),
            "pitch2word": pa.array([[0]] * CLIPS, COLUMNS["pitch2word"]),
            "word_dur": pa.array([[]] * CLIPS, COLUMNS["word_dur"]),
            "bpm": pa.array([60] * CLIPS, COLUMNS["bpm"]),
            "has_score": pa.array([True] * CLIPS, COLUMNS["has_score"]),
        }
    )

    def ours() -> pa.RecordBatch:
        return assemble(annotations, prompts, [1] * CLIPS, ["x"] * CLIPS, [8.0] * CLIPS, latents, SPEC)

    def naive() -> pa.Array:
        before, after = np.zeros((PROMPT, 4, 64), np.float16), np.zeros((1, 4, 64), np.float16)
        rows = [np.concatenate([before, clip.reshape(-1, 4, 64), after]).tolist() for clip in latents]
        return pa.array(rows, COLUMNS["audio_feats"])

    assert ours().column("audio_feats").equals(naive())
    compare("rows", ours, naive, clips=CLIPS, megabytes=round(CLIPS * (PATCHES + PROMPT + 1) * 512 / 1e6, 2))


if __name__ == "__main__":
    main()
