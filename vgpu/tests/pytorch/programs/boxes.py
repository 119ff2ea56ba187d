"""torchvision's operators on boxes and regions, whose sizes values decide."""

import torch
from attempt import Attempts, backward
from torchvision import ops

CUDA = "cuda"


def boxes(count=50):
    corner = torch.rand(count, 2, device=CUDA) * 50
    return torch.cat([corner, corner + 1 + torch.rand(count, 2, device=CUDA) * 40], dim=1)


def features(channels=16):
    return torch.randn(2, channels, 32, 32, device=CUDA, requires_grad=True)


def regions():
    which = torch.zeros(50, 1, device=CUDA)
    return torch.cat([which, boxes()], dim=1)


def kept():
    scores = torch.rand(50, device=CUDA)
    found = ops.nms(boxes(), scores, 0.5)
    assert 0 < found.numel() <= 50


def kept_of_classes():
    classes = torch.randint(0, 3, (50,), device=CUDA)
    assert 0 < ops.batched_nms(boxes(), torch.rand(50, device=CUDA), classes, 0.5).numel() <= 50


def deformable(masked):
    weight = torch.randn(8, 16, 3, 3, device=CUDA, requires_grad=True)
    offset = torch.randn(2, 18, 30, 30, device=CUDA, requires_grad=True)
    mask = torch.rand(2, 9, 30, 30, device=CUDA, requires_grad=True) if masked else None
    backward(ops.deform_conv2d(features(), offset, weight, mask=mask))
    assert weight.grad is not None and offset.grad is not None


def pooled():
    pool = ops.MultiScaleRoIAlign(["0", "1"], 7, 2)
    maps = {"0": features(), "1": features()}
    backward(pool(maps, [boxes(), boxes()], [(128, 128), (128, 128)]))


attempt = Attempts()
attempt("nms", kept)
attempt("batched_nms", kept_of_classes)
attempt("roi_align", lambda: backward(ops.roi_align(features(), regions(), 7, sampling_ratio=2)))
attempt("roi_align of lists", lambda: backward(ops.roi_align(features(), [boxes(), boxes()], 7)))
attempt("roi_pool", lambda: backward(ops.roi_pool(features(), regions(), 7)))
attempt("ps_roi_align", lambda: backward(ops.ps_roi_align(features(98), regions(), 7)))
attempt("ps_roi_pool", lambda: backward(ops.ps_roi_pool(features(98), regions(), 7)))
attempt("deform_conv2d", lambda: deformable(masked=False))
attempt("deform_conv2d with a mask", lambda: deformable(masked=True))
attempt("pooling of several maps", pooled)
attempt("box_iou", lambda: ops.box_iou(boxes(), boxes()))
attempt("generalized_box_iou_loss", lambda: backward(ops.generalized_box_iou_loss(boxes().requires_grad_(), boxes())))
attempt("remove_small_boxes", lambda: boxes()[ops.remove_small_boxes(boxes(), 5)])
attempt("masks_to_boxes", lambda: ops.masks_to_boxes(torch.ones(3, 20, 20, device=CUDA)))
attempt("focal loss", lambda: backward(ops.sigmoid_focal_loss(features(), torch.rand(2, 16, 32, 32, device=CUDA))))
attempt.finish()
