-- SPDX-License-Identifier: Apache-2.0
--
--- nn.batchnorm(channels, options)
--- Each channel of [batch, channels, dims...] with mean 0 and variance 1 over the samples and their dims, scaled and
--- shifted. In evaluation it takes the statistics of earlier steps, the buffers running_mean and running_var.
---@param channels integer
---@param options? table
---@option eps number=1e-5
---@option momentum number=0.1 weight of a step's statistics in the running ones
---@option affine boolean=true whether there are a weight and a bias
---@option sync boolean=false statistics of the whole batch instead of each microbatch's
---@option dtype orrery.DType='f32'
---@return orrery.Module
local _, orrery = ...
local nn = orrery.nn
local in_single = require "orrery.in_single"
local spatial = require "orrery.nn.spatial"

-- Of x [batch, dims..., channels] the mean for each sample's use, [batch, 1..., channels], or without the batch where
-- it is of all samples; and of how many it is.
local function mean_of(x, n, sync)
  local rows = n > 0 and x:mean(spatial.range(2, n + 1), { keep = true }) or x
  if sync then return rows:mean(1), x.shape[1] end
  return rows:microbatch_mean()
end

return nn.module("batchnorm", function(m, channels, options)
  local o = orrery.options("batchnorm", options, {
    eps = 1e-5, momentum = 0.1, affine = true, sync = false, dtype = "f32",
  })
  if o.affine then
    m.weight = orrery.parameter(channels, { init = nn.init.ones, dtype = o.dtype })
    m.bias = orrery.parameter(channels, { init = nn.init.zeros, dtype = o.dtype })
  end
  m.running_mean = orrery.buffer(channels, { init = nn.init.zeros, dtype = o.dtype })
  m.running_var = orrery.buffer(channels, { init = nn.init.ones, dtype = o.dtype })

  -- A layer that is called several times in a step counts each call.
  local function keep(running, rows)
    local statistic = (o.sync and rows or rows:mean(1)):reshape(channels)
    running:update((running:updated() * (1 - o.momentum) + statistic * o.momentum):cast(o.dtype))
  end

  -- x less its mean, and its variance; what is kept of both has no gradient.
  local function measured(x, n)
    local mean = mean_of(x, n, o.sync)
    local centred = x - mean
    local variance, samples = mean_of(centred * centred, n, o.sync)
    local count = samples * spatial.product(spatial.lengths(x, n))
    local unbiased = type(count) == "number" and count / math.max(count - 1, 1) or count / (count - 1):maximum(1)
    keep(m.running_mean, mean:stop_gradient())
    keep(m.running_var, (variance * unbiased):stop_gradient())
    return centred, variance
  end

  return in_single(function(x)
    local n = #x.shape - 2
    spatial.check("batchnorm", x, n, channels)
    x = spatial.to_last(x, n)
    local centred, variance
    if orrery.training() then
      centred, variance = measured(x, n)
    else
      centred, variance = x - m.running_mean, m.running_var
    end
    local y = centred * (variance + o.eps):rsqrt()
    if o.affine then y = y * m.weight + m.bias end
    return spatial.to_first(y, n)
  end)
end)
