"""Every error a user can meet, and every fault a clip can have.

    PrepError                 exit code 1: failed; the message says what to do
    ├── UsageError            2: the command line or the configuration is wrong
    │   ├── ConfigError       a key or a value of the configuration
    │   └── NoDeviceError     the devices asked for are not there
    ├── CorpusError           an annotation file that cannot be read as what it is declared to be
    ├── CheckpointError       a VAE or tokenizer folder that is incomplete or of another kind
    ├── OutputError           the output folder: foreign, locked, of another plan
    ├── WorkerError           a worker process died or could not start
    ├── TooManySkipped        4: finished, but beyond --max-skip-rate
    └── Stopped               75: stopped before the end; the same command goes on
        └── DiskError         no space, quota, read-only, vanished mount

A fault of one clip is data, not an error of the run: a ``Fault`` in a list, with one of the codes below. ``ClipFault``
carries one out of a function that can't return a clip.
"""

from dataclasses import dataclass
from enum import IntEnum, StrEnum

MAX_MESSAGE = 500
"""Characters of a fault's message."""


class ExitCode(IntEnum):
    OK = 0
    FAILED = 1
    USAGE = 2
    DAMAGED = 3
    TOO_MANY_SKIPPED = 4
    STOPPED = 75


class PrepError(Exception):
    """Base of all errors; the text has three parts: what is wrong, why it matters, what to do."""

    exit_code = ExitCode.FAILED

    def __init__(self, what: str, *, why: str = "", fix: str = "") -> None:
        super().__init__(what)
        self.what, self.why, self.fix = what, why, fix

    def __str__(self) -> str:
        parts = [self.what]
        if self.why:
            parts.append(f"  why: {self.why}")
        if self.fix:
            parts.append(f"  fix: {self.fix}")
        return "\n".join(parts)


class UsageError(PrepError):
    """The command line or the configuration is wrong."""

    exit_code = ExitCode.USAGE


class ConfigError(UsageError):
    """A key or a value of the configuration is wrong."""


class NoDeviceError(UsageError):
    """The devices asked for are not there."""


class CorpusError(PrepError):
    """An annotation file cannot be read as what the configuration declares it to be."""


class CheckpointError(PrepError):
    """A VAE or tokenizer folder is incomplete, damaged or of another kind."""


class OutputError(PrepError):
    """The output folder can't be used: foreign content, another plan, locked."""


class WorkerError(PrepError):
    """A worker process died or could not start."""


class TooManySkipped(PrepError):
    """The run finished, but more clips were skipped than --max-skip-rate allows."""

    exit_code = ExitCode.TOO_MANY_SKIPPED


class Stopped(PrepError):
    """Stopped before the end by a signal; what was committed is kept and the same command goes on."""

    exit_code = ExitCode.STOPPED


class DiskError(Stopped):
    """No space, quota reached, read-only or vanished file system; what was committed is kept."""


class Stage(StrEnum):
    """Where a clip was refused."""

    READ = "read"
    """its annotation"""
    SCORE = "score"
    """words, notes and tempo"""
    PROMPT = "prompt"
    """token ids"""
    SCAN = "scan"
    """its audio file's existence and header"""
    DECODE = "decode"
    """its samples"""
    ENCODE = "encode"
    """its latents"""


class FaultCode(StrEnum):
    """Why a clip has no row. docs/faults.md has the same table; a test compares the two."""

    # read
    BAD_ITEM = "bad_item"
    """the annotation item is not an object, or a field has the wrong type"""
    MISSING_FIELD = "missing_field"
    """a field without which there is no clip (wav_fn, word, audio_path, transcription)"""
    DUPLICATE_ITEM = "duplicate_item"
    """the same (corpus, item) came before"""
    FILTERED = "filtered"
    """left out by an option of the corpus (min_confidence, solo_singer_only)"""
    NO_AUDIO_FOR_SEGMENT = "no_audio_for_segment"
    """a segment of a song folder has no audio file of its name"""
    AMBIGUOUS_AUDIO = "ambiguous_audio"
    """a segment of a song folder has several audio files of its name"""
    NO_ANNOTATION = "no_annotation"
    """an audio file of a song folder has no annotation, or a song folder no readable metadata.json"""
    # score
    NO_LYRIC = "no_lyric"
    """only rests and markers, or no words at all"""
    EMPTY_WORD = "empty_word"
    """an empty word that has notes"""
    UNKNOWN_NOTE = "unknown_note"
    """a note value that is not one of the twelve"""
    PITCH_RANGE = "pitch_range"
    """a MIDI pitch outside 0..127, or not a whole number"""
    BAD_BPM = "bad_bpm"
    """bpm missing, 0, negative, above 255, or not a number"""
    BAD_PITCH2WORD = "bad_pitch2word"
    """an index outside the words, or falling"""
    UNEQUAL_LISTS = "unequal_lists"
    """pitch, note and pitch2word (or a duration list) differ in length from what they describe"""
    BAD_DURATION = "bad_duration"
    """an entry of word_dur or pitch_dur that is negative, not finite or not a number"""
    PARTIAL_SCORE = "partial_score"
    """some but not all of pitch, note, pitch2word"""
    WORD_WITHOUT_NOTE = "word_without_note"
    """a word that no note points to (severity can be set to warn)"""
    # prompt
    RESERVED_TOKEN = "reserved_token"
    """a word spells a special or added token"""
    UNKNOWN_TEXT = "unknown_text"
    """the tokenizer knows nothing of a word"""
    # scan and decode
    MISSING_AUDIO = "missing_audio"
    """the audio file does not exist"""
    NOT_A_FILE = "not_a_file"
    """a folder, FIFO, socket or device in place of the audio file"""
    UNREADABLE = "unreadable"
    """no permission, or an I/O error"""
    OUTSIDE_ROOT = "outside_root"
    """an absolute path or one with .. that leaves audio_root"""
    SYMLINK = "symlink"
    """a symbolic link, and the configuration forbids them"""
    EMPTY_FILE = "empty_file"
    """zero bytes"""
    NOT_AUDIO = "not_audio"
    """no decoder takes it"""
    NO_SAMPLES = "no_samples"
    """it decodes to zero samples"""
    NOT_FINITE = "not_finite"
    """NaN or infinite samples"""
    SILENT = "silent"
    """nothing above -80 dBFS"""
    PHASE_CANCELLED = "phase_cancelled"
    """channels that cancel each other when mixed to mono"""
    TOO_SHORT = "too_short"
    """under one patch"""
    TOO_LONG = "too_long"
    """beyond max_duration"""
    CHANGED = "changed"
    """the file changed between plan and read"""
    DECODE_TIMEOUT = "decode_timeout"
    """the decoder did not return"""
    POISON = "poison"
    """decoding it killed the process twice"""
    NO_MEMORY = "no_memory"
    """the host's memory does not suffice to decode it"""
    # encode
    LATENT_NOT_FINITE = "latent_not_finite"
    """the VAE made NaN or infinite latents of it"""
    LATENT_OVERFLOW = "latent_overflow"
    """a latent beyond float16's 65504"""
    OOM = "oom"
    """no device memory even for one window"""


class WarningCode(StrEnum):
    """What was noticed about a clip that still has a row; stored with the row's facts."""

    BPM_ROUNDED = "bpm_rounded"
    """a fractional bpm was rounded half up"""
    NUMERIC_STRING = "numeric_string"
    """a number was written as a string"""
    WORD_WITHOUT_NOTE = "word_without_note"
    """a word that no note points to: it is in the column, not in the prompt"""
    TRUNCATED = "truncated"
    """the file ends before its header says; what is there was decoded"""
    LENGTH_MISMATCH = "length_mismatch"
    """the header's length differs from the decoded one by more than 0.5 s"""
    LOUD = "loud"
    """samples beyond full scale (float files); kept as they are"""
    UPSAMPLED = "upsampled"
    """recorded at a lower rate than the encoder's: nothing is in it above half its rate"""
    SYMLINKED = "symlinked"
    """the audio file is reached through a symbolic link"""
    WINDOWED = "windowed"
    """too long for one encoder call: encoded in windows"""


@dataclass(frozen=True, slots=True)
class Fault:
    """Why one clip has no row."""

    stage: Stage
    code: FaultCode
    message: str
    """At most ``MAX_MESSAGE`` characters; of a longer one the middle is left out."""

    def __post_init__(self) -> None:
        # Messages quote annotations, which may be of any size, and lie in the plan and in skipped.jsonl.
        if len(self.message) > MAX_MESSAGE:
            cut = f"{self.message[: MAX_MESSAGE - 103]}...{self.message[-100:]}"
            object.__setattr__(self, "message", cut)


class ClipFault(Exception):
    """Carries a ``Fault`` to whoever handles the clip. Never ends a run."""

    def __init__(self, stage: Stage, code: FaultCode, message: str) -> None:
        self.fault = Fault(stage, code, message)
        super().__init__(f"{code}: {self.fault.message}")
