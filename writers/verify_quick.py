"""One block by its header alone: it lies where it should, and is the chunk that it should be."""

from .ipc_message import HeaderError, Read, read_header
from .lineage import Lineage
from .verify_block import NO_HASHES, BlockResult
from .verify_expect import ExpectedBlock
from .verify_identity import BlockPlace, header_chunk, header_problems
from .verify_report import DamageCode, Problem


def quick_block(
    read: Read, size: int, place: BlockPlace, block: ExpectedBlock, fingerprint: Lineage | None
) -> BlockResult:
    """Check a block's header in a file of ``size`` bytes; the body is not read."""
    try:
        header = read_header(read, block.offset, size)
    except (HeaderError, OSError) as error:
        return bad_block(place, block, DamageCode.BLOCK_HEADER, str(error))
    if header is None or header.end != block.offset + block.length:
        found = "the end mark" if header is None else f"a message of {header.end - block.offset:,} bytes"
        return bad_block(place, block, DamageCode.BLOCK_HEADER, f"{found} stands where {block.length:,} bytes belong")
    return BlockResult(
        place=place,
        length=block.length,
        problems=tuple(header_problems(header, place, block.record, fingerprint)),
        chunk=block.record.chunk if block.record else header_chunk(header),
        num_rows=header.num_rows,
        item_hashes=NO_HASHES,
    )


def bad_block(place: BlockPlace, block: ExpectedBlock, code: DamageCode, message: str) -> BlockResult:
    """The result for a block that can't be looked into."""
    problem = Problem(code=code, message=message, shard=place.shard, block=place.number, byte_offset=place.offset)
    return BlockResult(
        place=place,
        length=block.length,
        problems=(problem,),
        checksum_right=False,
        chunk=block.record.chunk if block.record else None,
        item_hashes=NO_HASHES,
    )
