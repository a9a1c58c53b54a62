"""How large a clip's row will be, before it exists: chunks are bounded by bytes, and the bill needs the total.

The latents dominate (L * P * D * 2 bytes, 90 % of a row of the golden data). The rest is within 3 % of what Arrow
really takes there; an estimate is enough, since the bound is about memory and open times, not correctness.
"""

import numpy as np
import numpy.typing as npt

from ...core.units import LatentSpec

INT32_LISTS = 5
"""packed_text_tokens, text_mask, audio_mask, loss_mask, labels."""
PROMPT_TOKEN_BYTES = 36
"""Per prompt token: its text in svs_prompt and its share of the annotation columns."""
FIXED_BYTES = 280
"""Names, scalars and outer offsets."""


def row_bytes(
    prompt_length: npt.NDArray[np.integer], num_patches: npt.NDArray[np.integer], spec: LatentSpec
) -> npt.NDArray[np.int64]:
    """Estimated bytes of the rows of clips with these many prompt tokens [N] and patches [N]; int64 [N]."""
    position_bytes = 2 * spec.patch_size * spec.latent_dim + 4 * spec.patch_size + 4 + 4 * INT32_LISTS
    length = np.asarray(prompt_length, np.int64) + np.asarray(num_patches, np.int64) + 1
    return length * position_bytes + np.asarray(prompt_length, np.int64) * PROMPT_TOKEN_BYTES + FIXED_BYTES
