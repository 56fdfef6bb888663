"""The names that the GPU path uses exist in the real package, whose GPU is not needed to see that."""

import inspect

import torch


def test_every_name_of_the_gpu_path_is_there():
    for name in (
        "is_available",
        "device_count",
        "get_device_capability",
        "get_arch_list",
        "get_device_properties",
        "max_memory_allocated",
        "synchronize",
    ):
        assert callable(getattr(torch.cuda, name))
    for call in (torch.cuda.get_device_capability, torch.cuda.max_memory_allocated, torch.cuda.synchronize):
        assert list(inspect.signature(call).parameters) == ["device"]


def test_the_switches_of_precision_and_autotuning_are_there_and_take_what_is_set():
    before = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    try:
        for precision, tf32 in (("high", True), ("highest", False)):
            torch.set_float32_matmul_precision(precision)
            torch.backends.cudnn.allow_tf32 = tf32
            assert torch.backends.cuda.matmul.allow_tf32 is tf32
            assert torch.backends.cudnn.allow_tf32 is tf32
        torch.backends.cudnn.benchmark = True
        assert torch.backends.cudnn.benchmark is True
        torch.backends.cudnn.benchmark = False
    finally:
        torch.set_float32_matmul_precision(before[0])
        torch.backends.cudnn.allow_tf32 = before[1]
