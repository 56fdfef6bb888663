"""TorchScript of PyTorch 1.0 and 1.1, whose modules are classes of their own."""

import torch


class Scripted(torch.jit.ScriptModule):
    """A model's forward pass, over the model's own parameters."""

    def __init__(self, plain):
        super().__init__()
        self.layer1 = plain.layer1
        self.layer2 = plain.layer2
        self.layer3 = plain.layer3

    @torch.jit.script_method
    def forward(self, x):
        return self.layer3(self.layer2(self.layer1(x)))


script = Scripted
