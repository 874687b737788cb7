# SPDX-License-Identifier: Apache-2.0
#
# PyTorch's functions of function_cases.lua; layer_cases.py makes their figures.
import math

from torch import nn
from torch.nn import functional as F

DIMS = (3, 4, 6)

CASES = {
    "normalize": (lambda x: F.normalize(x, dim=-1), DIMS),
    "normalize one": (lambda x: F.normalize(x, p=1), DIMS),
    "normalize three": (lambda x: F.normalize(x, p=3, dim=0), DIMS),
    "normalize largest": (lambda x: F.normalize(x, p=math.inf, dim=-1), DIMS),
    "normalize short": (lambda x: F.normalize(x, dim=-1, eps=5), DIMS),
    "softmax of channels": (nn.Softmax(1), DIMS),
    "log softmax of rows": (nn.LogSoftmax(0), DIMS),
    "gelu none": (nn.GELU(), DIMS),
    "cosine similarity": (lambda a, b: F.cosine_similarity(a, b, dim=-1), DIMS, (DIMS, "real")),
    "cosine similarity of channels": (lambda a, b: F.cosine_similarity(a, b), DIMS, (DIMS, "real")),
    "cosine similarity of all": (lambda a, b: F.cosine_similarity(a[:, None], b[None], dim=-1), (3, 5), ((4, 5), "real")),
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
