import pytest

from latentprep.cli.quantities import clock, count, duration, rate, size, times_real_time


@pytest.mark.parametrize(
    ("expected", "seconds"), [("0.0 s", 0), ("59.9 s", 59.9), ("1.0 min", 60), ("1.0 h", 3600), ("1,250.5 h", 4501800)]
)
def test_durations_take_the_unit_of_their_size(expected: str, seconds: float):
    assert expected == duration(seconds)


@pytest.mark.parametrize(
    ("expected", "seconds"), [("0:00:00", 0), ("0:00:01", 0.2), ("27:46:40", 1e5), ("-:--:--", None)]
)
def test_clock_times_are_rounded_up(expected: str, seconds: float | None):
    """An ETA of 0:00:00 means done, so a rest of 0.2 s must not show it."""
    assert expected == clock(seconds)


@pytest.mark.parametrize(("expected", "num_bytes"), [("999 B", 999), ("1.00 kB", 1000), ("1,500.00 TB", 1.5e15)])
def test_sizes_are_decimal(expected: str, num_bytes: float):
    assert expected == size(num_bytes)


def test_counts_know_one_from_many():
    assert ["0 rows", "1 row", "20,896 rows"] == [count(number, "row") for number in (0, 1, 20896)]


def test_rates_keep_three_digits_and_unknown_is_not_zero():
    assert ["-", "0.87", "43.1", "1,520"] == [rate(value) for value in (None, 0.871, 43.12, 1520.4)]
    assert times_real_time(10, 0) is None
