-- SPDX-License-Identifier: Apache-2.0
--
-- ZeRO++'s quantized weights: parameters lie in pieces as under strategy.fsdp, and travel to where they are used in 8
-- bits, with a scale for each block of elements: about a quarter of the bytes. The optimizer's weights stay as they are.
--
--   strategy = { strategy.data {}, require "strategies.zeropp" { block = 256 } }
--
-- Wang et al., "ZeRO++: Extremely Efficient Collective Communication for Giant Model Training", 2023
-- (arXiv:2306.10209).
local strategy = require("orrery").strategy
local sharded = require "strategies.sharded"

-- What 8 bits keep of x[blocks, n], gathered on every rank.
local function gathered(step, x, attributes)
  local scale = x:abs():max(2, { keep = true }):maximum(1e-30) / 127
  local bytes = ((x / scale):round() + 128):cast "u8"
  local all_bytes, all_scales = step:op("unshard", { bytes }, attributes), step:op("unshard", { scale }, attributes)
  return (all_bytes:cast(x.dtype) - 128) * all_scales
end

return strategy.define {
  name = "zeropp", class = "approx", requires = "shares of the batch",
  provides = "sharded state", conflicts = "sharded state", predict = strategy.traffic.pieces,
  options = { prefetch = 1, reshard = true, each = false, block = 256 },
  transform = function(draft, o)
    sharded(draft, o, function(step, p, group)
      local attributes, elements = { group = group, each = o.each and 1 or 0 }, 1
      for _, d in ipairs(p.dims) do elements = elements * d end
      -- What is not whole blocks, biases and norms, travels as it is.
      if elements % o.block > 0 then return step:op("unshard", { p }, attributes) end
      return gathered(step, step:tensor(p):reshape(elements // o.block, o.block), attributes):reshape(p.dims)
    end)
  end,
}
