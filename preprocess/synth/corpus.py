"""The two corpora this package can write: a small one to try the tool with, and big ones for tests and benchmarks."""

from .bulk_corpus import BulkCorpus, write_bulk_corpus
from .demo_corpus import DemoCorpus, DemoFault, write_demo_corpus
from .take import DemoFile

__all__ = ["BulkCorpus", "DemoCorpus", "DemoFault", "DemoFile", "write_bulk_corpus", "write_demo_corpus"]
