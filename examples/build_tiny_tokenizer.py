"""Build the text tokenizer that comes with the encoders ``tiny`` and ``dummy``.

    python examples/build_tiny_tokenizer.py [FOLDER]

A Llama-style BPE with byte fallback: no training, only the lists below, so that the same script makes the same bytes.
Its ids 0 to 104 lie as in VoxCPM2's tokenizer (unk, bos, eos, reserved, the four audio boundaries); the rest is
made to be small: about 1,050 tokens, against 73,448. Characters beyond the lists become one to four byte tokens.
"""

import json
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "preprocess" / "encode" / "tiny"

SPECIAL = ("<unk>", "<s>", "</s>")
FIRST_BOUNDARY = 101
BOUNDARIES = ("<|audio_start|>", "<|audio_end|>", "<|audio_prompt_start|>", "<|audio_prompt_end|>")

# Frequent in songs: persons, feelings, sky and season, time, motion; then the little words between them.
HAN = (
    "我你他她它们人感受心爱情恋思念想忆梦泪笑哭痛伤苦甜喜乐愁恨怕悲欢孤独寂寞温柔美丽真假善恶命运缘生死魂灵身影"
    "天地日月星云风雨雪雷电光明暗夜晨朝夕阳春夏秋冬山水海河江湖流波浪花草树叶木林火烟尘土石沙路桥城门窗灯"
    "时间刻秒分年岁昨今未来永远久瞬曾经过去现在从前后早晚初始终最再又还已将才刚便就都也只不没无有是非"
    "走跑飞停等留离别回归来到过进出上下开关看见听说唱歌跳舞问答写读记忘知道懂明白找寻追求得失放弃给拿握抱牵"
    "手眼睛口唇脸发肩脚血声音语言话字名词句诗曲酒茶杯瓶衣裳红黄蓝绿白黑青紫金银色大小多少高低长短轻重远近深浅"
    "一二三四五六七八九十百千万双半两几个次遍场段首年天世界国家乡故旧新老幼男女孩儿父母亲朋友谁何怎么什为因"
    "的了着把被让使和与同跟对向往于以用从自己所那这哪里边中外内东西南北面如果若像似般样当然而但却可能会要该愿"
    "吧吗呢啊哦呀啦哎嗯喂难易好坏快慢热冷暖凉静默安宁平凡常自由勇敢坚强努力希望信守护漂迷醉醒睡沉落起升照亮消散"
)

# Left to right, each pair must exist as tokens by then.
MERGES = (
    ("A", "P"), ("S", "P"), ("▁", "AP"), ("▁", "SP"), ("l", "a"), ("n", "a"), ("o", "h"), ("y", "e"), ("ye", "ah"),
    ("o", "v"), ("ov", "e"), ("l", "ove"), ("t", "h"), ("th", "e"), ("y", "ou"), ("i", "n"), ("a", "n"), ("m", "e"),
)  # fmt: skip


def vocabulary() -> dict[str, int]:
    """Token -> id."""
    reserved = [f"<|reserved_{token_id}|>" for token_id in range(len(SPECIAL), FIRST_BOUNDARY)]
    tokens = [*SPECIAL, *reserved, *BOUNDARIES, *(f"<0x{byte:02X}>" for byte in range(256)), "▁"]
    tokens += [chr(code) for code in range(0x21, 0x7F)]
    tokens += [chr(code) for code in (*range(0x3041, 0x3097), *range(0x30A1, 0x30FB), 0x30FC)]
    tokens += [*HAN, *("ou", "ah"), *(left + right for left, right in MERGES)]
    return {token: token_id for token_id, token in enumerate(dict.fromkeys(tokens))}


def merges() -> list[list[str]]:
    """Pairs in order of rank; the two helpers make "ou" and "ah" reachable."""
    return [["o", "u"], ["a", "h"], *(list(pair) for pair in MERGES)]


def tokenizer_json() -> dict[str, Any]:
    """Content of tokenizer.json."""
    vocab = vocabulary()
    special = list(vocab)[: FIRST_BOUNDARY + len(BOUNDARIES)]
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": vocab[token], "content": token, **flags} for token in special],
        "normalizer": None,
        "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": False},
        "post_processor": None,
        "decoder": {
            "type": "Sequence",
            "decoders": [
                {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
                {"type": "ByteFallback"},
                {"type": "Fuse"},
                {"type": "Strip", "content": " ", "start": 1, "stop": 0},
            ],
        },
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": "<unk>",
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": True,
            "byte_fallback": True,
            "ignore_merges": False,
            "vocab": vocab,
            "merges": merges(),
        },
    }


def tokenizer_config() -> dict[str, Any]:
    """Content of tokenizer_config.json; ``legacy`` keeps the pre-tokenizer's "always"."""
    names = {"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"}
    return {"tokenizer_class": "LlamaTokenizerFast", **names, "legacy": True, "add_bos_token": True}


def build(folder: Path) -> None:
    """Write both files into ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in (("tokenizer.json", tokenizer_json()), ("tokenizer_config.json", tokenizer_config())):
        (folder / name).write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    build(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
