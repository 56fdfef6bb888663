"""The names that the GPU path uses exist in the real package, whose GPU is not needed to see that."""

import tensorflow as tf


def test_every_name_of_the_gpu_path_is_there():
    for name in (
        "get_device_details",
        "set_memory_growth",
        "get_memory_growth",
        "enable_tensor_float_32_execution",
        "tensor_float_32_execution_enabled",
        "get_memory_info",
    ):
        assert callable(getattr(tf.config.experimental, name))
    assert callable(tf.test.experimental.sync_devices)
    assert callable(tf.config.set_visible_devices)
    assert callable(tf.config.get_visible_devices)


def test_the_switch_of_precision_takes_what_is_set():
    before = tf.config.experimental.tensor_float_32_execution_enabled()
    try:
        for on in (True, False):
            tf.config.experimental.enable_tensor_float_32_execution(on)
            assert tf.config.experimental.tensor_float_32_execution_enabled() is on
    finally:
        tf.config.experimental.enable_tensor_float_32_execution(before)


def test_a_tensor_tells_where_it_was_computed():
    place = tf.DeviceSpec.from_string(tf.constant(1.0).device)
    assert (place.device_type, place.device_index) == ("CPU", 0)
