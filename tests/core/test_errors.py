"""Texts of errors and faults."""

from latentprep.core.errors import MAX_MESSAGE, ClipFault, Fault, FaultCode, Stage


def test_a_long_message_of_a_fault_keeps_its_beginning_and_its_end():
    """It quotes annotations of any size, and stands in the plan, in skipped.jsonl and on the screen."""
    fault = Fault(Stage.READ, FaultCode.BAD_ITEM, "begin" + "x" * 10_000 + "end")

    assert MAX_MESSAGE == len(fault.message)
    assert ("beginx", "x...x", "xend") == (fault.message[:6], fault.message[396:401], fault.message[-4:])
    assert fault == Fault(Stage.READ, FaultCode.BAD_ITEM, fault.message), "the plan reads back what it wrote"


def test_a_message_that_fits_is_left_alone():
    text = "x" * MAX_MESSAGE

    assert text == Fault(Stage.READ, FaultCode.BAD_ITEM, text).message
    assert "bad_item: " + "x" * MAX_MESSAGE == str(ClipFault(Stage.READ, FaultCode.BAD_ITEM, text))
