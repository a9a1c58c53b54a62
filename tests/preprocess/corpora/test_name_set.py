"""Names seen: what a set of texts says, whatever the names."""

from hypothesis import given
from hypothesis import strategies as st

from latentprep.preprocess.corpora.name_set import NameSet


@given(st.lists(st.text(st.characters(exclude_categories=()), max_size=3)))
def test_it_says_what_a_set_says(names: list[str]) -> None:
    """Empty names and halves of characters included."""
    seen, plain = NameSet(), set[str]()

    for name in names:
        assert (name not in plain) is seen.add(name)
        plain.add(name)

    assert len(plain) == len(seen)


def test_it_grows_and_forgets_nothing() -> None:
    """Twenty thousand names are three doublings."""
    seen = NameSet()
    names = [f"song {number}" for number in range(20_000)]

    assert all(map(seen.add, names))

    assert not any(map(seen.add, names))
    assert 20_000 == len(seen)
    assert seen.add("song")
