"""Matrix product and copy in PyTorch, into memory that is there already."""

import torch

from workloads import ceiling
from workloads.subject import Subject


def build(cell, framework, dtype):
    """Build one unit for each measure of the cell."""
    kind = torch.bfloat16 if cell["precision"] == "bf16" else getattr(torch, dtype)
    device = framework.place

    def matmul(size):
        a, b = (torch.from_numpy(matrix).to(device, kind) for matrix in ceiling.canonical(size))
        product = torch.empty_like(a)
        return lambda: torch.matmul(a, b, out=product)

    def copy():
        source = torch.ones(cell["parameters"]["copy_bytes"] // ceiling.FLOAT32_BYTES, device=device)
        target = torch.empty_like(source)
        return lambda: target.copy_(source)

    units = {name: copy() if name == "copy" else matmul(int(name[7:])) for name in cell["measures"]}
    return Subject(units, losses=lambda tensor: [tensor.view(-1)[0]], settings={"compiler": "none"})
