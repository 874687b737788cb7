# SPDX-License-Identifier: Apache-2.0
#
# PyTorch's functions of function_cases.lua; layer_cases.py makes their figures.
from torch import nn
from torch.nn import functional as F

DIMS = (3, 4, 6)

CASES = {
    "softplus with": (lambda x: F.softplus(x, beta=0.7), DIMS),
    "elu with": (lambda x: F.elu(x, alpha=1.5), DIMS),
    "leaky relu with": (lambda x: F.leaky_relu(x, -0.2), DIMS),
    "glu": (F.glu, DIMS),
    "glu of channels": (lambda x: F.glu(x, 1), DIMS),
    "prelu": (nn.PReLU(), DIMS),
    "prelu of channels": (nn.PReLU(4), DIMS),
    "log softmax": (lambda x: F.log_softmax(x, -1), DIMS),
    "softplus": (F.softplus, DIMS),
    "logsigmoid": (F.logsigmoid, DIMS),
    "elu": (F.elu, DIMS),
    "selu": (F.selu, DIMS),
    "leaky relu": (F.leaky_relu, DIMS),
    "hardswish": (F.hardswish, DIMS),
    "hardsigmoid": (F.hardsigmoid, DIMS),
    "mish": (F.mish, DIMS),
    "identity": (nn.Identity(), DIMS),
}
