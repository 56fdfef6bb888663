"""The net and what trains it, in PyTorch."""

from collections import OrderedDict

import torch
from torch import nn
from torch.nn import functional

from workloads import densenet
from workloads.densenet import plan, recipe
from workloads.frameworks import keep_known, order_version


class DenseLayer(nn.Module):
    """Two convolutions, whose result is appended to what they were given."""

    def __init__(self, channels, parameters, norm):
        super().__init__()
        self.norm1 = norm(channels)
        self.conv1 = nn.Conv2d(channels, parameters["bottleneck"], 1)
        self.norm2 = norm(parameters["bottleneck"])
        self.conv2 = nn.Conv2d(parameters["bottleneck"], parameters["growth_rate"], plan.KERNEL, padding=1)

    def forward(self, x):
        new = self.conv1(functional.relu(self.norm1(x), inplace=True))
        new = self.conv2(functional.relu(self.norm2(new), inplace=True))
        return torch.cat([x, new], 1)


class Transition(nn.Module):
    """From one block to the next."""

    def __init__(self, widths, norm):
        super().__init__()
        wide, narrow = widths
        self.norm = norm(wide)
        self.conv = nn.Conv2d(wide, narrow, 1)

    def forward(self, x):
        return functional.avg_pool2d(self.conv(functional.relu(self.norm(x), inplace=True)), 2)


class Net(nn.Module):
    """The net: images of (n, 3, 32, 32) to scores of (n, 10). Its parameters have the plan's names."""

    def __init__(self, parameters, how):
        super().__init__()

        def norm(channels):
            # PyTorch's momentum is the share that is new.
            return nn.BatchNorm2d(channels, eps=how.norm_epsilon, momentum=1 - how.norm_momentum)

        laid = plan.make(parameters)
        conv = nn.Conv2d(
            plan.CHANNELS, laid.stem, plan.KERNEL, stride=parameters["stem_stride"], padding=plan.KERNEL // 2
        )
        stages = [("stem", nn.Sequential(OrderedDict(conv=conv)))]
        for block, layers in enumerate(laid.blocks):
            if block:
                stages.append((plan.name_transition(block), Transition(laid.transitions[block - 1], norm)))
            dense = [
                (plan.name_layer(block, layer).partition(".")[2], DenseLayer(channels, parameters, norm))
                for layer, channels in enumerate(layers)
            ]
            name = plan.name_layer(block, 0).partition(".")[0]
            stages.append((name, nn.Sequential(OrderedDict(dense))))
        for name, stage in stages:
            self.add_module(name, stage)
        self.stages = [name for name, _ in stages]
        self.norm = norm(laid.last)
        self.classifier = nn.Linear(laid.last, plan.CLASSES)

    def forward(self, x):
        for name in self.stages:
            x = getattr(self, name)(x)
        x = functional.relu(self.norm(x), inplace=True)
        return self.classifier(functional.adaptive_avg_pool2d(x, 1).flatten(1))


def choose_layout(channels_last):
    """Return how ``to`` is told in which order tensors lie in memory. Before 1.5 there is only one."""
    if order_version(torch.__version__) < (1, 5):
        return {}
    return {"memory_format": torch.channels_last if channels_last else torch.contiguous_format}


EPSILON_AT = "uncorrected" if order_version(torch.__version__) < (1, 3) else "corrected"
"""Where this version's Adam adds its epsilon (before 1.3, as Keras's)."""


def corrects(how):
    """Tell whether this version's Adam has to be helped to what a recipe wants."""
    return how.epsilon_at != EPSILON_AT


class Trainer(object):
    """The net at its canonical start, with what trains and validates it.

    Args:
        framework: the framework's ``Framework``.
        parameters: the cell's.
        how: its ``Recipe``.
        dtype: name of the parameters' type.
        compile_it: what becomes of the forward pass with its loss.
        channels_last: whether tensors lie as (n, rows, columns, channels) in memory.
    """

    def __init__(self, framework, parameters, how, dtype, compile_it=None, channels_last=False):
        self.framework = framework
        self.parameters = parameters
        self.how = how
        self.dtype = getattr(torch, dtype)
        self.layout = choose_layout(channels_last)
        self.net = Net(parameters, how).to(self.dtype)
        self.net.to(framework.place, **self.layout)
        self.start = {name: torch.from_numpy(value) for name, value in densenet.canonical(parameters).items()}
        self.steps = 0
        self.optimiser = torch.optim.Adam(
            self.group(),
            lr=parameters["learning_rate"],
            betas=recipe.BETAS,
            eps=how.adam_epsilon,
            amsgrad=False,
            **keep_known(
                torch.optim.Adam,
                # As PyTorch chooses by itself: one kernel for all tensors where that pays.
                foreach=framework.index is not None,
                fused=False,
                maximize=False,
                capturable=False,
                differentiable=False,
            ),
        )
        self.clear = framework.clear_by(self.optimiser)
        self.step = self.step_corrected if corrects(how) else self.optimiser.step
        self.compute = self.compute_plainly if compile_it is None else compile_it(self.compute_plainly)
        self.reset()

    def group(self):
        """Divide the parameters by whether L2 touches them."""
        named = list(self.net.named_parameters())
        touched = [value for name, value in named if self.how.decayed == "all" or plan.is_kernel(name)]
        known = {id(value) for value in touched}
        rest = [value for _, value in named if id(value) not in known]
        groups = [{"params": touched, "weight_decay": self.how.decay}]
        return groups + ([{"params": rest, "weight_decay": 0.0}] if rest else [])

    def reset(self):
        """Go back to the canonical start."""
        with torch.no_grad():
            for name, parameter in self.net.named_parameters():
                parameter.copy_(self.start[name])
            for module in self.net.modules():
                if isinstance(module, nn.BatchNorm2d):
                    module.reset_running_stats()
        self.optimiser.state.clear()
        self.steps = 0
        self.set_rate(self.parameters["learning_rate"])
        self.net.train()

    def set_rate(self, rate):
        """Set the learning rate."""
        for group in self.optimiser.param_groups:
            group["lr"] = rate

    def rate(self):
        """Read the learning rate back."""
        return self.optimiser.param_groups[-1]["lr"]

    def compute_plainly(self, images, labels):
        """Return the mean cross entropy of a batch, and how many of it are right."""
        with self.framework.autocast():
            scores = self.net(images)
        # Outside autocast, as Keras's loss under a mixed policy.
        scores = scores.to(self.dtype)
        hits = scores.detach().argmax(dim=1).eq(labels).sum()
        return functional.cross_entropy(scores, labels, reduction="mean"), hits

    def move(self, images, labels):
        """Bring a batch to the device, in the net's layout."""
        place = self.framework.place
        return images.to(place, **self.layout), labels.to(place)

    def train(self, images, labels):
        """Make one training step; return the loss before it and how many were right, on the device."""
        self.clear()
        loss, hits = self.compute(images, labels)
        loss.backward()
        self.step()
        return loss.detach(), hits

    def step_corrected(self):
        """Make a step of an Adam that adds epsilon before the correction, so that it comes after it."""
        self.steps += 1
        epsilon = self.how.adam_epsilon * (1 - recipe.BETAS[1] ** self.steps) ** 0.5
        for group in self.optimiser.param_groups:
            group["eps"] = epsilon
        self.optimiser.step()

    def validate(self, images, labels):
        """Return the mean loss of a batch and how many of it are right, on the device."""
        with torch.no_grad():
            return self.compute(images, labels)

    def name_parameters(self):
        """Copy the parameters to the host, by name."""
        return {name: to_numpy(value) for name, value in self.net.named_parameters()}

    def name_applied(self):
        """Copy the gradients of the first step as Adam got them, by name: its first moment holds them."""
        return {
            name: to_numpy(self.optimiser.state[value]["exp_avg"]) / (1 - recipe.BETAS[0])
            for name, value in self.net.named_parameters()
        }

    def name_statistics(self):
        """Copy the running statistics to the host, by name."""
        found = {}
        for name, module in self.net.named_modules():
            if isinstance(module, nn.BatchNorm2d):
                found[name + ".mean"] = to_numpy(module.running_mean)
                found[name + ".variance"] = to_numpy(module.running_var)
        return found


def to_numpy(tensor):
    """Copy a tensor to the host, in its logical shape."""
    return tensor.detach().cpu().contiguous().numpy().copy()
