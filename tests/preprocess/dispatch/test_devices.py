"""Which devices a run uses."""

import pytest

from latentprep.core.errors import NoDeviceError, UsageError
from latentprep.preprocess.config import EncoderSettings, RunConfig
from latentprep.preprocess.dispatch.devices import Gpu, choose_devices, parse_listing, visible_gpus

TWO = """GPU 0: NVIDIA H200 (UUID: GPU-aaaa1111-0000-0000-0000-000000000000)
GPU 1: NVIDIA H200 (UUID: GPU-bbbb2222-0000-0000-0000-000000000000)
"""
MIG = """GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-aaaa1111-0000-0000-0000-000000000000)
  MIG 3g.20gb     Device  0: (UUID: MIG-11111111-0000-0000-0000-000000000000)
  MIG 3g.20gb     Device  1: (UUID: MIG-22222222-0000-0000-0000-000000000000)
GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-bbbb2222-0000-0000-0000-000000000000)
"""


def uuids(gpus: list[Gpu]) -> list[str]:
    return [gpu.uuid[:8] for gpu in gpus]


def test_the_listing_of_nvidia_smi_is_read():
    """Names and UUIDs as the driver prints them."""
    assert Gpu("0", "NVIDIA H200", "GPU-aaaa1111-0000-0000-0000-000000000000") == parse_listing(TWO)[0]
    assert ["GPU-aaaa", "GPU-bbbb"] == uuids(parse_listing(TWO))


def test_a_card_in_mig_mode_stands_for_its_instances():
    """CUDA refuses to work on the whole card then."""
    assert ["MIG-1111", "MIG-2222", "GPU-bbbb"] == uuids(parse_listing(MIG))


@pytest.mark.parametrize(
    ("mask", "expected"),
    [
        (None, ["GPU-aaaa", "GPU-bbbb"]),
        ("", []),
        ("1", ["GPU-bbbb"]),
        ("1,0", ["GPU-bbbb", "GPU-aaaa"]),
        ("GPU-bbbb", ["GPU-bbbb"]),
        ("0,7,1", ["GPU-aaaa"]),
        ("-1", []),
    ],
)
def test_cuda_visible_devices_is_respected(mask: str | None, expected: list[str]):
    """Schedulers hand out cards that way; as in CUDA the list ends at the first entry that names nothing."""
    assert expected == uuids(visible_gpus(parse_listing(TWO), mask))


def test_a_mig_instance_can_be_named():
    """As SLURM does for MIG devices."""
    assert ["MIG-2222"] == uuids(visible_gpus(parse_listing(MIG), "MIG-22222222-0000-0000-0000-000000000000"))


def test_a_device_named_twice_is_refused():
    """Two workers would share one card's memory."""
    with pytest.raises(UsageError, match="twice"):
        visible_gpus(parse_listing(TWO), "0,0")


def config(**changes: object) -> RunConfig:
    corpus = {"name": "x", "type": "folder_based", "dataset_root": "x"}
    base = {"datasets": [corpus], "encoder": EncoderSettings(name="dummy"), "output_dir": "out"}
    return RunConfig.model_validate(base | changes)


def test_more_gpus_than_visible_is_an_error_that_says_how_many(monkeypatch: pytest.MonkeyPatch):
    """And how to run without them: never silently on the CPU."""
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)

    with pytest.raises(NoDeviceError) as caught:
        choose_devices(config(gpus=8))

    assert "8 GPUs were asked for, 0 are visible on this machine" == caught.value.what
    assert "run on the CPU with `--device cpu --workers N`" == caught.value.fix
    assert 2 == caught.value.exit_code


def test_no_gpu_and_no_wish_is_an_error_too(monkeypatch: pytest.MonkeyPatch):
    """A run of hours on a CPU because a driver is missing is the worst surprise."""
    monkeypatch.setenv("PATH", "/nonexistent")

    with pytest.raises(NoDeviceError):
        choose_devices(config())


def test_cpu_workers_see_no_gpu():
    """One rank a worker, none of them touches a card."""
    devices = choose_devices(config(device="cpu", workers=3))

    assert ("cpu", "cpu", "cpu") == devices.names
    assert [{"CUDA_VISIBLE_DEVICES": ""}] * 3 == list(devices.environments)
