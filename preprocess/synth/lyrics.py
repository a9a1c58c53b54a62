"""Lyrics of the invented songs: lines of words, written for this package and sung nowhere else.

A word is what a corpus annotates as one: a Han character, a kana, or an English word. Kana that only modify the one
before (small ya, yu, yo, long marks) are avoided, since they would be words without a syllable.
"""


def _characters(*lines: str) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(line) for line in lines)


def _spaced(*lines: str) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(line.split()) for line in lines)


LINES: dict[str, tuple[tuple[str, ...], ...]] = {
    "zh": (
        *_characters(
            "纸船停在第七级台阶",
            "茶杯里住着半个黄昏",
            "铁匠把星星敲成钉子",
            "窗台的猫数完了云",
            "雨点练习走下楼梯",
            "我替旧钟保管一秒",
            "灯塔给海写了封信",
            "面包店先闻到早晨",
            "冬天在毛衣里睡着",
            "沙漏倒过来还是你",
            "邮差绕过整片麦田",
            "河面借走桥的影子",
        ),
        *_spaced("把 coffee 倒 进 海 里", "你 说 maybe 明 天 下 雪"),
    ),
    "ja": _characters(
        "かみのふねがたなをすべる",
        "ねこはやねでほしをかぞえ",
        "時計の中に雨がすむ",
        "まどから海がのぞいている",
        "パン屋のけむり朝をよぶ",
        "冬のボタンをひとつなくした",
        "月はさかみちをころがる",
        "手紙はまだ駅でねている",
        "風にも名前をつけたよ",
        "テレビのうらに夏がいる",
    ),
    "en": _spaced(
        "paper boats are parking on the seventh stair",
        "the kettle hums a harbor into the room",
        "a blacksmith hammers starlight into nails",
        "my umbrella remembers every cloud by name",
        "somebody folded the river and put it away",
        "winter is asleep inside your woolen sleeve",
        "the baker knows the morning by its smell",
        "one second of the old clock belongs to me",
        "lamps along the pier are learning how to float",
        "tomorrow left its shoes beside the door",
        "we don't count the trains that never came",
    ),
}
"""Language -> lines of words."""
