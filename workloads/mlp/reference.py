"""Computes the MLP's trajectory in plain numpy: ``python -m workloads.mlp.reference``.

Written from the formulas, without a framework, so that no framework is its own judge.
"""

from workloads import mlp, trajectory

# Of the profiles: the article's sizes, and the smaller ones of smoke.
SIZES = (
    {"batch": 1024, "features": 1000, "hidden": 1000, "outputs": 1},
    {"batch": 256, "features": 250, "hidden": 250, "outputs": 1},
)
LEARNING_RATE = 1e-4
STEPS_PER_CALL = 10
STEPS = 30


def compute(parameters):
    """Train for ``STEPS`` steps in float64 and return the trajectory."""
    weights, x, y = mlp.canonical(parameters)
    start = {name: value.copy() for name, value in weights.items()}
    losses, first, changes = [], None, {}
    for step in range(1, STEPS + 1):
        loss, gradients = differentiate(weights, x, y)
        losses.append(float(loss))
        first = first or gradients
        for name in weights:
            weights[name] = weights[name] - parameters["learning_rate"] * gradients[name]
        if step in (1, parameters["steps_per_call"]):
            changes[str(step)] = trajectory.summarise({name: weights[name] - start[name] for name in weights})
    return {
        "parameters": parameters,
        "parameter_count": sum(value.size for value in weights.values()),
        "losses": losses,
        "gradients": trajectory.summarise(first),
        "changes": changes,
    }


def differentiate(weights, x, y):
    """Return the mean squared error and its gradients by name, at ``weights``."""
    layers = len(weights) // 2
    inputs = [x]
    for layer in range(1, layers + 1):
        inputs.append(inputs[-1].dot(weights["w%d" % layer]) + weights["b%d" % layer])
    error = inputs[-1] - y
    upstream = 2.0 * error / error.size
    gradients = {}
    for layer in range(layers, 0, -1):
        gradients["w%d" % layer] = inputs[layer - 1].T.dot(upstream)
        gradients["b%d" % layer] = upstream.sum(axis=0)
        upstream = upstream.dot(weights["w%d" % layer].T)
    return (error**2).mean(), gradients


if __name__ == "__main__":
    trajectory.write(
        "mlp",
        [compute(dict(sizes, learning_rate=LEARNING_RATE, steps_per_call=STEPS_PER_CALL)) for sizes in SIZES],
    )
