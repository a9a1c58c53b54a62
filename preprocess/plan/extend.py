"""``extend_plan``: a further plan for a dataset whose corpora gained, lost or changed clips."""

from ...core.paths import OutputPaths
from ..config import RunConfig
from ..encode.protocol import EncoderInfo
from .clip_table import ClipTable
from .compare import Comparison, KnownClips
from .extended_cut import cut_extension
from .make import chunk_table, config_yaml, cut_input, refused_counts
from .plan import PlanHead
from .plans import Plans
from .signature import CorporaSignature
from .store import write_plan


def extend_plan(
    config: RunConfig,
    info: EncoderInfo,
    paths: OutputPaths,
    plans: Plans,
    table: ClipTable,
    known: KnownClips,
    found: Comparison,
    signature: CorporaSignature,
) -> Plans:
    """Store the next plan of a dataset and return all of them. Limits and identity are those of the plans before.

    ``signature`` is that of the corpora before ``table`` was read. Raises OSError for a full or read-only disk.
    """
    sizes = cut_input(table, info)
    made = cut_extension(
        sizes,
        found,
        known,
        lambda chunk: plans.chunk(chunk).column("batch").to_numpy(),
        plans.limits,
        seed=plans.identity.seed,
        base=plans.fingerprint,
        first_chunk=plans.num_chunks,
    )
    head = PlanHead(
        identity=plans.identity,
        limits=plans.limits,
        spec=plans.spec,
        config_yaml=config_yaml(config),
        corpora_signature=signature,
        chunks=chunk_table(table, sizes, made.pieces, info),
        refused_counts=refused_counts(table),
        extension=made.extension,
    )
    write_plan(paths.extended_plan(len(plans.parts) + 1), head, table, made.pieces)
    return Plans.open(paths)
