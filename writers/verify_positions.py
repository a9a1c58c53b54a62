"""Rules of the packed columns: lengths, masks, labels, tokens and latents of every position.

    position             0 .. K-1          K .. K+N-1          K+N
    packed_text_tokens   prompt ids        0                   audio_end
    audio_feats          zeros             latent patches      zeros
    text_mask            1                 0                   1
    audio_mask           0                 1                   0
    loss_mask            0                 1                   0
    labels               0                 0, the last one 1   0

R rows, T positions of all rows together, P frames per patch, D latent dim.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..core.schema import AUDIO_END_ID, AUDIO_START_ID
from ..core.units import LatentSpec, frames_to_seconds
from .verify_findings import Finding, Indices, ListColumn, Mask, ScalarColumn, item_address
from .verify_report import DamageCode

_PACKED = ("packed_text_tokens", "text_mask", "audio_mask", "loss_mask", "labels")
_EXPONENT = np.uint16(0x7C00)
_NEGATIVE_INFINITY = np.uint16(0xFC00)


def position_findings(batch: pa.RecordBatch, spec: LatentSpec | None) -> Iterator[Finding]:
    """What is wrong with the packed columns; later rules are only looked at where the earlier ones hold.

    Without ``spec`` any patch shape is right that all rows share, and durations are only looked at for plausibility.
    """
    lengths = ScalarColumn.of(batch, "total_length")
    packed = {name: ListColumn.of(batch, name) for name in _PACKED}
    feats = ListColumn.of(batch, "audio_feats")
    wrong = list(_lengths(lengths, [*packed.values(), feats]))
    yield from wrong
    if wrong:
        return
    wrong = list(_masks(packed))
    yield from wrong
    if wrong:
        return
    layout = _Layout(packed["audio_mask"])
    yield from _labels(packed["labels"], layout)
    yield from _tokens(packed["packed_text_tokens"], layout)
    yield from _latents(feats, layout, spec)
    yield from _durations(batch, layout, spec)


class _Layout:
    """Where each row's patches lie, read off a valid audio_mask."""

    def __init__(self, audio: ListColumn) -> None:
        self.is_patch: Mask = audio.values == 1  # [T]
        self.starts, self.ends = audio.starts, audio.bounds[1:] - 1  # [R]; the ends are the positions of audio_end
        self.num_patches: Indices = np.add.reduceat(audio.values, self.starts).astype(np.int64)  # [R]
        self.first_patch: Indices = self.ends - self.num_patches  # [R]


def _lengths(total: ScalarColumn, columns: list[ListColumn]) -> Iterator[Finding]:
    yield from total.wrong(DamageCode.ROW_LENGTH, total.values < 3, "total_length is {value}, a row has 3 at least")
    for column in columns:
        mask = column.lengths != total.values
        yield from column.wrong_length(
            DamageCode.ROW_LENGTH, mask, "{name} is {value} long, total_length says otherwise"
        )


def _masks(packed: dict[str, ListColumn]) -> Iterator[Finding]:
    text, audio, loss = (packed[name] for name in ("text_mask", "audio_mask", "loss_mask"))
    values = audio.values
    yield from audio.wrong(DamageCode.ROW_MASK, (values != 0) & (values != 1), "{name} holds {value}")
    yield from text.wrong(DamageCode.ROW_MASK, text.values != 1 - values, "{name} is {value} where audio_mask is, too")
    yield from loss.wrong(DamageCode.ROW_MASK, loss.values != values, "{name} is {value}, audio_mask isn't")
    steps = np.diff(values, prepend=values[:1]) == 1
    steps[audio.starts] = values[audio.starts] == 1
    runs = np.add.reduceat(steps.astype(np.int64), audio.starts)
    shape = (runs != 1) | (values[audio.starts] != 0) | (values[audio.bounds[1:] - 1] != 0)
    yield from audio.wrong_length(DamageCode.ROW_MASK, shape, "{name} is not one run of patches between prompt and end")


def _labels(labels: ListColumn, layout: _Layout) -> Iterator[Finding]:
    expected = np.zeros(len(labels.values), np.int32)
    expected[layout.ends - 1] = 1
    yield from labels.wrong(
        DamageCode.ROW_LABEL, labels.values != expected, "labels hold {value} where the last patch's 1 says otherwise"
    )


def _tokens(tokens: ListColumn, layout: _Layout) -> Iterator[Finding]:
    values = tokens.values
    yield from tokens.wrong(DamageCode.ROW_TOKEN, values < 0, "a token id of {value}")
    yield from tokens.wrong(DamageCode.ROW_TOKEN, layout.is_patch & (values > 0), "token {value} on a patch, not 0")
    for where, positions, token in (
        ("in front of the patches", layout.first_patch - 1, AUDIO_START_ID),
        ("at the end", layout.ends, AUDIO_END_ID),
    ):
        mask = np.zeros(len(values), np.bool_)
        mask[positions] = values[positions] != token
        yield from tokens.wrong(DamageCode.ROW_TOKEN, mask, f"token {{value}} {where}, not {token}")


def _latents(feats: ListColumn, layout: _Layout, spec: LatentSpec | None) -> Iterator[Finding]:
    patches = ListColumn.of_array(feats.items, "audio_feats")
    frames = ListColumn.of_array(patches.items, "audio_feats")
    patch_size = spec.patch_size if spec else int(patches.lengths[0])
    latent_dim = spec.latent_dim if spec else int(frames.lengths[0]) if len(frames.lengths) else 0
    wrong_patches = patches.lengths != patch_size
    wrong_frames = frames.lengths != latent_dim
    if wrong_patches.any() or wrong_frames.any() or not latent_dim:
        message = f"{{name}} is not made of patches of {patch_size} frames of {latent_dim} values"
        of_frames = np.flatnonzero(wrong_frames)
        mask = wrong_patches.copy()
        mask[np.searchsorted(patches.bounds, of_frames, side="right") - 1] = True
        at = np.flatnonzero(mask)
        yield Finding(DamageCode.ROW_SHAPE, feats.rows_of(at), item_address(feats.items, int(at[0])), message)
        return
    yield from _latent_values(frames, feats, layout, patch_size * latent_dim)


def _latent_values(frames: ListColumn, feats: ListColumn, layout: _Layout, width: int) -> Iterator[Finding]:
    bits_TW = np.ascontiguousarray(frames.values).view(np.uint16).reshape(-1, width)
    for code, found, message in (
        (DamageCode.LATENT_NOT_FINITE, _not_finite(bits_TW), "a latent of {value}"),
        (DamageCode.LATENT_STRAY, _stray(bits_TW, layout), "a latent of {value} where there is no patch"),
    ):
        if found is not None:
            first, positions = found
            value, address = frames.values[first], item_address(frames.items, first)
            yield Finding(code, feats.rows_of(positions), address, message.replace("{value}", str(value)))
    zero = _zero_rows(bits_TW, layout)
    if len(zero):
        address = item_address(frames.items, int(layout.first_patch[zero[0]]) * width)
        yield Finding(DamageCode.LATENT_ZERO, zero, address, "every latent of its patches is 0")


def _not_finite(bits_TW: npt.NDArray[np.uint16]) -> tuple[int, Indices] | None:
    """(the first one's number, the positions [T] that hold one). Two passes without a copy when all is well."""
    if bits_TW.view(np.int16).max() < _EXPONENT and bits_TW.max() < _NEGATIVE_INFINITY:
        return None
    bad_TW = (bits_TW & _EXPONENT) == _EXPONENT
    return int(np.argmax(bad_TW)), np.flatnonzero(bad_TW.any(axis=1))


def _stray(bits_TW: npt.NDArray[np.uint16], layout: _Layout) -> tuple[int, Indices] | None:
    """As ``_not_finite``. What lies between the patches of two rows is one stretch of memory: no copy, one look."""
    starts = [0, *layout.ends.tolist()]
    stops = [*layout.first_patch.tolist(), len(bits_TW)]
    spans = [(a, b) for a, b in zip(starts, stops, strict=True) if bits_TW[a:b].max()]
    if not spans:
        return None
    bad = np.concatenate([a + np.flatnonzero(bits_TW[a:b].any(axis=1)) for a, b in spans])
    width = bits_TW.shape[1]
    return int(bad[0]) * width + int(np.argmax(bits_TW[bad[0]] != 0)), bad


def _zero_rows(bits_TW: npt.NDArray[np.uint16], layout: _Layout) -> Indices:
    """Rows whose patches are all zeros. One whose first patch isn't needs no further look: that is nearly every row."""
    suspects = np.flatnonzero(~bits_TW[layout.first_patch].any(axis=1))
    spans = zip(layout.first_patch[suspects].tolist(), layout.ends[suspects].tolist(), strict=True)
    return suspects[[not bits_TW[start:end].any() for start, end in spans]] if len(suspects) else suspects


def _durations(batch: pa.RecordBatch, layout: _Layout, spec: LatentSpec | None) -> Iterator[Finding]:
    audio = ScalarColumn.of(batch, "audio_duration")
    if spec is None:
        wrong = ~(np.isfinite(audio.values) & (audio.values > 0))
    else:
        expected = layout.num_patches * frames_to_seconds(spec.patch_size, spec)
        wrong = ~np.isclose(audio.values, expected, rtol=1e-9, atol=0.0)
    yield from audio.wrong(DamageCode.ROW_DURATION, wrong, "{name} is {value} s, which is not that of its patches")
    estimated = ScalarColumn.of(batch, "estimated_duration")
    wrong = ~(np.isfinite(estimated.values) & (estimated.values > 0))
    yield from estimated.wrong(DamageCode.ROW_DURATION, wrong, "{name} is {value} s")
