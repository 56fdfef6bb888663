from workloads import ceiling, mlp, work


def test_ten_steps_of_the_article_are_102_gflop():
    parameters = {"batch": 1024, "features": 1000, "hidden": 1000, "outputs": 1, "steps_per_call": 10}
    counted = mlp.count_work(parameters, "call")
    assert counted["steps"] == 10
    assert round(counted["flop"] / 1e9) == 102
    assert mlp.count_work(parameters, "step")["flop"] * 10 == counted["flop"]


def test_one_layer_needs_no_gradient_of_its_input():
    assert work.dense_training_flop(2, [3, 5]) == 2 * work.matmul_flop(2, 3, 5)


def test_ceilings_count_products_and_copied_bytes():
    assert ceiling.count_work({}, "matmul_100") == {"flop": 2e6}
    assert ceiling.count_work({"copy_bytes": 8}, "copy") == {"bytes": 16.0}
