-- SPDX-License-Identifier: Apache-2.0
--
-- Cases of layers.lua: name, layer, the input's dims, the result's. layer_cases.py has the same ones.
return {
  { "conv1d", function(nn) return nn.conv1d(3, 4, 3, { stride = 2, padding = 1 }) end, { 2, 3, 9 }, { 2, 4, 5 } },
  { "conv2d", function(nn) return nn.conv2d(3, 4, { 3, 2 }, { stride = { 2, 1 }, padding = { 1, 0 },
    dilation = { 1, 2 } }) end, { 2, 3, 7, 6 }, { 2, 4, 4, 4 } },
  { "conv2d point", function(nn) return nn.conv2d(5, 3, 1, { bias = false, stride = 2 }) end, { 2, 5, 5, 4 },
    { 2, 3, 3, 2 } },
  { "conv2d groups", function(nn) return nn.conv2d(4, 6, 3, { groups = 2, padding = 1 }) end, { 2, 4, 5, 5 },
    { 2, 6, 5, 5 } },
  { "conv2d depthwise", function(nn) return nn.conv2d(5, 5, 3, { groups = 5, padding = 1, stride = 2 }) end,
    { 2, 5, 6, 7 }, { 2, 5, 3, 4 } },
  { "conv2d same", function(nn) return nn.conv2d(2, 3, { 4, 3 }, { padding = "same", dilation = { 1, 2 } }) end,
    { 2, 2, 5, 6 }, { 2, 3, 5, 6 } },
  { "conv3d", function(nn) return nn.conv3d(2, 3, 2, { padding = 1, stride = { 1, 2, 1 } }) end, { 2, 2, 3, 4, 3 },
    { 2, 3, 4, 3, 4 } },
  { "conv3d groups", function(nn) return nn.conv3d(4, 6, 2, { groups = 2 }) end, { 2, 4, 3, 4, 3 },
    { 2, 6, 2, 3, 2 } },
  { "conv3d depthwise", function(nn) return nn.conv3d(3, 3, 2, { groups = 3, bias = false }) end, { 2, 3, 3, 4, 3 },
    { 2, 3, 2, 3, 2 } },
  { "conv_transpose1d", function(nn) return nn.conv_transpose1d(3, 2, 4, { stride = 3, padding = 1,
    output_padding = 2 }) end, { 2, 3, 4 }, { 2, 2, 13 } },
  { "conv_transpose2d", function(nn) return nn.conv_transpose2d(4, 6, { 3, 2 }, { stride = 2, padding = { 1, 0 },
    dilation = { 2, 1 }, groups = 2 }) end, { 2, 4, 3, 4 }, { 2, 6, 7, 8 } },
  { "conv_transpose3d", function(nn) return nn.conv_transpose3d(2, 2, 2, { stride = 2, bias = false }) end,
    { 1, 2, 2, 3, 2 }, { 1, 2, 4, 6, 4 } },
  { "conv_transpose3d groups", function(nn) return nn.conv_transpose3d(4, 4, 2, { groups = 2, stride = { 1, 2, 1 } }) end,
    { 2, 4, 2, 3, 2 }, { 2, 4, 3, 6, 3 } },
  { "unfold", function(nn)
    return nn.unfold({ 3, 2 }, { dilation = { 1, 2 }, padding = { 1, 0 }, stride = { 2, 1 } })
  end, { 2, 3, 6, 5 }, { 2, 18, 9 } },
  { "unfold square", function(nn) return nn.unfold(2) end, { 2, 3, 4, 3 }, { 2, 12, 6 } },
  { "fold", function(nn)
    return nn.fold({ 6, 5 }, { 3, 2 }, { dilation = { 1, 2 }, padding = { 1, 0 }, stride = { 2, 1 } })
  end, { 2, 18, 9 }, { 2, 3, 6, 5 } },
  { "fold square", function(nn) return nn.fold(4, 2, { stride = 2 }) end, { 2, 8, 4 }, { 2, 2, 4, 4 } },
  { "convolution", function(nn)
    return function(x, w)
      return nn.convolution(x, w, { stride = { 2, 1 }, padding = { 1, 0 }, dilation = { 1, 2 } })
    end
  end, { 2, 3, 7, 6 }, { 2, 4, 4, 4 }, { { { 4, 3, 3, 2 }, "real" } } },
  { "convolution of length", function(nn)
    return function(x, w, b) return nn.convolution(x, w, { bias = b, groups = 2, padding = "same" }) end
  end, { 2, 4, 9 }, { 2, 6, 9 }, { { { 6, 2, 3 }, "real" }, { { 6 }, "real" } } },
  { "convolution by channel", function(nn)
    return function(x, w) return nn.convolution(x, w, { groups = 3 }) end
  end, { 2, 3, 3, 4, 3 }, { 2, 3, 2, 3, 2 }, { { { 3, 1, 2, 2, 2 }, "real" } } },
  { "max_pool1d", function(nn) return nn.max_pool1d(3, { stride = 1, dilation = 2 }) end, { 2, 3, 9 }, { 2, 3, 5 } },
  { "max_pool2d", function(nn) return nn.max_pool2d(3, { stride = 2, padding = 1 }) end, { 2, 3, 7, 6 },
    { 2, 3, 4, 3 } },
  { "max_pool2d ceil", function(nn) return nn.max_pool2d({ 3, 2 }, { stride = { 2, 3 }, padding = 1, ceil_mode = true }) end,
    { 2, 3, 8, 6 }, { 2, 3, 5, 3 } },
  { "max_pool2d no more", function(nn) return nn.max_pool2d(2, { stride = 3, padding = 1, ceil_mode = true }) end,
    { 1, 2, 6, 5 }, { 1, 2, 3, 2 } },
  { "max_pool3d", function(nn) return nn.max_pool3d(2) end, { 1, 2, 4, 4, 6 }, { 1, 2, 2, 2, 3 } },
  { "avg_pool1d", function(nn) return nn.avg_pool1d(2) end, { 2, 3, 8 }, { 2, 3, 4 } },
  { "avg_pool2d", function(nn) return nn.avg_pool2d(3, { stride = 2, padding = 1 }) end, { 2, 3, 7, 6 },
    { 2, 3, 4, 3 } },
  { "avg_pool2d counted", function(nn) return nn.avg_pool2d({ 3, 2 }, { stride = 1, padding = 1,
    count_include_pad = false }) end, { 2, 3, 5, 4 }, { 2, 3, 5, 5 } },
  { "avg_pool3d", function(nn) return nn.avg_pool3d(2, { stride = 1 }) end, { 1, 2, 3, 3, 3 }, { 1, 2, 2, 2, 2 } },
  { "adaptive_avg_pool1d", function(nn) return nn.adaptive_avg_pool1d(3) end, { 2, 3, 7 }, { 2, 3, 3 } },
  { "adaptive_avg_pool2d", function(nn) return nn.adaptive_avg_pool2d { 1, 3 } end, { 2, 3, 5, 6 }, { 2, 3, 1, 3 } },
  { "adaptive_avg_pool3d", function(nn) return nn.adaptive_avg_pool3d(2) end, { 1, 2, 5, 4, 3 }, { 1, 2, 2, 2, 2 } },
  { "batchnorm", function(nn) return nn.batchnorm(3) end, { 4, 3, 3, 2 }, { 4, 3, 3, 2 } },
  { "groupnorm", function(nn) return nn.groupnorm(2, 4) end, { 2, 4, 3, 2 }, { 2, 4, 3, 2 } },
  { "instancenorm", function(nn) return nn.instancenorm(3, { affine = true }) end, { 2, 3, 4, 5 }, { 2, 3, 4, 5 } },
}
