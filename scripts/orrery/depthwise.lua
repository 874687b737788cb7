-- SPDX-License-Identifier: Apache-2.0
--
-- Convolutions of each channel with a weight of its own: sums over the taps of a window, element by element, so that no
-- window is stored.
local _, orrery = ...
local input = require "orrery.convolve_input"
local spatial = require "orrery.nn.spatial"
local join, range = spatial.join, spatial.range

-- x [..., channels] where the channels of an element are neighbours in memory, since each is read for every tap: a copy
-- if they are not, as rows cannot be a view then.
local function neighbours(x) return x:reshape(-1, x.shape[-1]):reshape(x.shape) end

-- The sum of windows [batch, positions..., size..., channels] times weights, one [channels] for each tap.
local function summed(windows, n, weights)
  local y
  for i, tap in ipairs(spatial.taps(windows, n)) do y = y and y + tap * weights[i] or tap * weights[i] end
  return y:reshape(join({ table.unpack(y.shape, 1, n + 1) }, y.shape[-1]))
end

-- f(x, weight) of x [batch, dims..., channels] and weight [channels, 1, size...].
return function(size, strides, before, behind)
  local n = #size
  local gathered = input.gradient(size, strides, before)

  local function input_gradient(dy, wide, x, padded, by_tap, weights)
    if gathered then
      return gathered(dy, x, function(windows, taps)
        local chosen = {}
        for i, tap in ipairs(taps) do chosen[i] = weights[tap] end
        return summed(windows, n, chosen)
      end)
    end
    local dx = (wide * by_tap):fold(spatial.lengths(padded, n), strides)
    for i = 1, n do dx = dx:slice(1 + i, before[i] + 1, before[i] + x.shape[1 + i]) end
    return dx
  end

  local function of_taps(by_tap) return { by_tap:reshape(-1, by_tap.shape[-1]):split(1, spatial.product(size)) } end
  local each = spatial.gradient { -- by_tap [size..., channels]
    forward = function(_, padded, by_tap) return summed(padded:windows(size, strides), n, of_taps(by_tap)) end,
    backward = function(dy, _, x, padded, by_tap)
      dy = neighbours(dy)
      local wide = dy:reshape(join({ table.unpack(dy.shape, 1, n + 1) }, spatial.filled(n, 1), dy.shape[-1]))
      return input_gradient(dy, wide, x, padded, by_tap, of_taps(by_tap)), nil,
        (padded:windows(size, strides) * wide):sum(range(1, n + 1))
    end,
  }
  return function(x, weight)
    local by_tap = weight:permute(join(range(3, n + 2), 1, 2)):reshape(-1):reshape(join(size, weight.shape[1]))
    return each(x, neighbours(spatial.pad(x, before, behind)), by_tap)
  end
end
