"""How a side trains: what layers and optimisers have of their own, made equal in ``fair``, as found in
``article``."""

BETAS = (0.9, 0.999)
"""Of Adam: D. P. Kingma, J. Ba: Adam: a method for stochastic optimization, ICLR 2015, arXiv:1412.6980."""


class Recipe(object):
    """One side's way to train.

    Attributes:
        name: of the trajectories that judge it.
        norm_epsilon: added to a variance before its root is taken.
        norm_momentum: share of a running statistic that stays at each step. PyTorch's own ``momentum`` is the
            share that is new.
        variance: what becomes of a batch's variance in the running one: PyTorch divides by n - 1
            (``unbiased``), Keras by n (``biased``), Keras 2.1 by n - 1 - epsilon (``keras-2``).
        adam_epsilon: of Adam.
        epsilon_at: whether it is added to the root of the second moment after its bias was ``corrected``
            (the paper's algorithm 1, PyTorch), or before (``uncorrected``: the paper's epsilon hat, Keras).
        decay: what is added to a tensor's gradient, as a multiple of the tensor.
        decayed: tensors to which it is added: ``kernels`` of convolutions and of the dense layer, or ``all``.
        in_loss: whether it enters by a penalty of the loss.
    """

    def __init__(
        self,
        name,
        norm_epsilon,
        norm_momentum,
        variance,
        adam_epsilon,
        epsilon_at,
        decay,
        decayed,
        in_loss,
    ):
        self.name = name
        self.norm_epsilon = norm_epsilon
        self.norm_momentum = norm_momentum
        self.variance = variance
        self.adam_epsilon = adam_epsilon
        self.epsilon_at = epsilon_at
        self.decay = decay
        self.decayed = decayed
        self.in_loss = in_loss

    @property
    def is_debiased(self):
        """Whether running statistics are divided by the share of them that batches made, so that where they
        began is of no account and after the first step they are the batch's own: those of Keras 2.1 are."""
        return self.variance == "keras-2"

    def settings(self):
        """What of it stands beside a row."""
        return {
            "norm_epsilon": self.norm_epsilon,
            "norm_momentum": self.norm_momentum,
            "running_variance": self.variance,
            "adam_epsilon": self.adam_epsilon,
            "adam_epsilon_at": self.epsilon_at,
            "l2_gradient": self.decay,
            "l2_tensors": self.decayed,
            "l2_in": "loss" if self.in_loss else "gradient",
        }


def choose(parameters, edition, side, epsilon_at=None, variance=None):
    """Return the recipe of a side, ``torch`` or ``keras``.

    In ``article`` each framework has the defaults that it had then and has today, but for Keras's L2, which
    a regulariser of c adds as 2 c w.

    Args:
        epsilon_at: where the version at hand adds epsilon, in ``article``; today's place by default.
        variance: the version's own, where it is not today's.
    """
    decay, name = parameters["l2"], "%s-%s" % (edition, side)
    own = variance or ("unbiased" if side == "torch" else "biased")
    name += "-" + own if variance else ""
    if edition == "fair":
        return Recipe(
            name=name,
            norm_epsilon=parameters["norm_epsilon"],
            norm_momentum=parameters["norm_momentum"],
            variance=own,
            adam_epsilon=parameters["adam_epsilon"],
            epsilon_at="corrected",
            decay=decay,
            decayed="kernels",
            in_loss=False,
        )
    today = "corrected" if side == "torch" else "uncorrected"
    at = epsilon_at or today
    name += "-" + at if at != today else ""
    if side == "torch":
        return Recipe(name, 1e-5, 0.9, own, 1e-8, at, decay, "all", False)
    return Recipe(name, 1e-3, 0.99, own, 1e-7, at, 2 * decay, "kernels", True)
