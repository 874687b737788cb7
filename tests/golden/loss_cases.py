# SPDX-License-Identifier: Apache-2.0
#
# PyTorch's losses of loss_cases.lua; layer_cases.py makes their figures.
import torch
from torch.nn import functional as F

PAIR, LOGITS, ROWS = (3, 4), (3, 2, 5), (5, 4)
REAL, UNIT, LABELS, SOFT = (PAIR, "real"), (PAIR, "unit"), ((3, 2), "classes", 5), (LOGITS, "unit")
CLASSED = (LABELS, ((5,), "weights"))
WEIGHTS, SIGNS, OTHERS = ((3, 2), "unit"), ((5,), "signs"), ((ROWS, "real"), (ROWS, "real"))


def pair(loss, **options):
    return lambda x, y: loss(x, y, **options)


def classes(loss, **options):
    """Classes are dim 1 of PyTorch's, and the last one here."""
    return lambda x, y: loss(x.movedim(-1, 1), y.movedim(-1, 1) if y.dim() == x.dim() else y, **options)


def of_classes(loss, **options):
    return lambda x, y, w: classes(loss, weight=w, **options)(x, y)


def weighed(loss, ignored, **options):
    def mean(x, y, w):
        each = loss(x.movedim(-1, 1), y, reduction="none", ignore_index=ignored, **options)
        return (each * w).sum() / (w * (y != ignored)).sum()
    return mean


def weighed_classes(x, y, w):
    """PyTorch's has no gradient by the weights."""
    each = F.cross_entropy(x.movedim(-1, 1), y, reduction="none")
    mean = (each * w[y]).sum() / w[y].sum()
    torch.testing.assert_close(mean, F.cross_entropy(x.movedim(-1, 1), y, weight=w.detach()))
    return mean


def ctc(rows, times, counts, **options):
    """Of logits, whose times are the first dim of PyTorch's."""
    def loss(x, y, a, b):
        return F.ctc_loss(F.log_softmax(x, -1).transpose(0, 1), y, a, b, **options)
    return loss, (4, 6, 5), ((4, 3), "given", rows), ((4,), "given", times), ((4,), "given", counts)


def triplet(**options):
    return lambda a, b, c: F.triplet_margin_loss(a, b, c, **options)


def weighed_bce(x, y, w):
    """PyTorch's has no gradient by the weight."""
    each = -w * y * F.logsigmoid(x) - (1 - y) * F.logsigmoid(-x)
    whole = F.binary_cross_entropy_with_logits(x, y, pos_weight=w.detach(), reduction="none")
    torch.testing.assert_close(each, whole)
    return each


def of_probabilities(**options):
    return lambda x, y: F.binary_cross_entropy(x.sigmoid(), y, **options)


CASES = {
    "mse sum": (pair(F.mse_loss, reduction="sum"), PAIR, REAL),
    "mse none": (pair(F.mse_loss, reduction="none"), PAIR, REAL),
    "l1": (pair(F.l1_loss), PAIR, REAL),
    "l1 none": (pair(F.l1_loss, reduction="none"), PAIR, REAL),
    "smooth l1": (pair(F.smooth_l1_loss), PAIR, REAL),
    "smooth l1 beta": (pair(F.smooth_l1_loss, beta=0.3, reduction="sum"), PAIR, REAL),
    "smooth l1 zero": (pair(F.smooth_l1_loss, beta=0, reduction="none"), PAIR, REAL),
    "huber": (pair(F.huber_loss), PAIR, REAL),
    "huber delta": (pair(F.huber_loss, delta=2.5, reduction="none"), PAIR, REAL),
    "bce": (of_probabilities(), PAIR, UNIT),
    "bce none": (of_probabilities(reduction="none"), PAIR, UNIT),
    "bce with logits": (pair(F.binary_cross_entropy_with_logits), PAIR, UNIT),
    "bce with logits weighed": (weighed_bce, PAIR, UNIT, ((4,), "unit")),
    "kl div": (pair(F.kl_div), PAIR, UNIT),
    "kl div batchmean": (pair(F.kl_div, reduction="batchmean"), PAIR, UNIT),
    "kl div logs": (pair(F.kl_div, reduction="none", log_target=True), PAIR, REAL),
    "nll": (classes(F.nll_loss), LOGITS, LABELS),
    "nll ignore": (classes(F.nll_loss, ignore_index=3), LOGITS, LABELS),
    "nll none": (classes(F.nll_loss, ignore_index=3, reduction="none"), LOGITS, LABELS),
    "nll weighed": (weighed(F.nll_loss, 0), LOGITS, LABELS, WEIGHTS),
    "cross entropy": (classes(F.cross_entropy), LOGITS, LABELS),
    "cross entropy sum": (classes(F.cross_entropy, ignore_index=3, reduction="sum"), LOGITS, LABELS),
    "cross entropy none": (classes(F.cross_entropy, ignore_index=3, reduction="none"), LOGITS, LABELS),
    "cross entropy smooth": (classes(F.cross_entropy, label_smoothing=0.2, ignore_index=0), LOGITS, LABELS),
    "cross entropy smooth none": (classes(F.cross_entropy, label_smoothing=0.1, reduction="none"), LOGITS, LABELS),
    "cross entropy weighed": (weighed(F.cross_entropy, 0, label_smoothing=0.1), LOGITS, LABELS, WEIGHTS),
    "cross entropy weighed classes": (weighed_classes, LOGITS, LABELS, ((5,), "unit")),
    "cross entropy class weights": (of_classes(F.cross_entropy), LOGITS, *CLASSED),
    "cross entropy class weights smooth": (of_classes(F.cross_entropy, label_smoothing=0.2, ignore_index=3), LOGITS, *CLASSED),
    "cross entropy class weights sum": (of_classes(F.cross_entropy, reduction="sum", ignore_index=0), LOGITS, *CLASSED),
    "cross entropy class weights none": (of_classes(F.cross_entropy, reduction="none", label_smoothing=0.1), LOGITS, *CLASSED),
    "cross entropy class weights soft": (of_classes(F.cross_entropy), LOGITS, SOFT, CLASSED[1]),
    "nll class weights": (of_classes(F.nll_loss, ignore_index=3), LOGITS, *CLASSED),
    "nll class weights none": (of_classes(F.nll_loss, reduction="none"), LOGITS, *CLASSED),
    "cross entropy soft": (classes(F.cross_entropy), LOGITS, SOFT),
    "cross entropy soft smooth": (classes(F.cross_entropy, label_smoothing=0.3, reduction="none"), LOGITS, SOFT),
    "cross entropy soft sum": (classes(F.cross_entropy, reduction="sum"), LOGITS, SOFT),
    "ctc": ctc([[1, 2, 2], [3, 1, 4], [2, 0, 0], [1, 1, 1]], [6, 5, 4, 6], [3, 3, 1, 2]),
    "ctc none": ctc([[0, 0, 0], [3, 1, 2], [2, 1, 1], [3, 3, 3]], [6, 3, 4, 1], [3, 3, 0, 1], reduction="none", blank=4),
    "ctc sum": ctc([[0, 1, 0], [4, 4, 2], [3, 0, 0], [1, 3, 1]], [3, 4, 6, 5], [3, 2, 1, 3], reduction="sum", blank=2),
    "ctc zero infinity": ctc([[1, 1, 1], [1, 2, 3], [4, 4, 1], [2, 1, 1]], [4, 2, 6, 6], [3, 3, 3, 1], zero_infinity=True),
    "cosine embedding": (lambda a, b, y: F.cosine_embedding_loss(a, b, y, margin=0.2), ROWS, (ROWS, "real"), SIGNS),
    "cosine embedding none": (lambda a, b, y: F.cosine_embedding_loss(a, b, y, reduction="none"), ROWS, (ROWS, "real"),
                              SIGNS),
    "triplet": (triplet(), ROWS, *OTHERS),
    "triplet none": (triplet(margin=3, reduction="none"), ROWS, *OTHERS),
    "triplet swap": (triplet(margin=2, swap=True, reduction="sum"), ROWS, *OTHERS),
    "triplet of one": (triplet(margin=4, p=1, reduction="none"), ROWS, *OTHERS),
    "triplet of three": (triplet(margin=4, p=3, reduction="none"), ROWS, *OTHERS),
}
