-- SPDX-License-Identifier: Apache-2.0
--
--- strategy.quantized(options)
--- Gradients in 8 bits or in 1: each rank deals its quantized gradient to the ranks, which add their share in
--- f32 and send it on quantized again. What rounding has lost waits for the next steps (error feedback).
--- APPROX.
---@param options? table
---@option bits integer=8 of an element on its way: 8, or 1: its sign
---@option size integer=0 ranks that share the batch; 0: all that are left
---@return orrery.Strategy

-- Seide et al., "1-Bit Stochastic Gradient Descent", Interspeech 2014; Tang et al., "1-bit Adam", ICML 2021
-- (arXiv:2102.02888), whose two-sided compression this is.
local orrery = require "orrery"

-- Rows [ranks, n] as bytes and a scale for each row, and back. n is a multiple of 8; of each row so many elements
-- count, and 0s follow.
local codes = {
  [8] = {
    pack = function(x)
      local scale = x:abs():max(2, { keep = true }):maximum(1e-30) / 127
      return ((x / scale):round() + 128):cast "u8", scale
    end,
    unpack = function(bytes, scale) return (bytes:cast "f32" - 128) * scale end,
  },
  [1] = {
    pack = function(x, counts)
      local rows, n = x.shape[1], x.shape[2]
      local weights = orrery.tensor({ 1, 2, 4, 8, 16, 32, 64, 128 }, "f32")
      local signs = x:ge(0):cast "f32":reshape(rows, n // 8, 8)
      return (signs * weights):sum(3):cast "u8", x:abs():sum(2, { keep = true }) / counts
    end,
    unpack = function(bytes, scale)
      local rows, n = bytes.shape[1], bytes.shape[2]
      local weights = orrery.tensor({ 1, 2, 4, 8, 16, 32, 64, 128 }, "f32")
      local bits = (bytes:cast "f32":reshape(rows, n, 1) / weights):floor()
      bits = bits - (bits / 2):floor() * 2
      return (bits * 2 - 1):reshape(rows, n * 8) * scale
    end,
  },
}

-- Elements of a rank's share, with room for whole bytes of signs.
local function share(shape, ranks)
  local n = 1
  for _, d in ipairs(shape) do n = n * d end
  return ((n + ranks - 1) // ranks + 7) // 8 * 8, n
end

-- How many elements of the share of each of `at` the gradient has; 1 where it has none, for something divides by it.
local function counted(at, each, n) return (n - at * each):maximum(1):minimum(each):cast "f32" end

return orrery.strategy.define {
  name = "quantized", class = "approx",
  options = { bits = 8, size = 0 },
  states = {
    residual = { init = "zeros", varying = true, leave = "sum" },
    owed = { init = "zeros", varying = true, leave = "refuse",
      shape = function(shape, _, ranks) return { 1, (share(shape, ranks)) } end },
  },
  exchange = function(g, s, o, axis)
    local code = codes[o.bits] or orrery.fail(("strategy.quantized: bits = %s: give 8 or 1"):format(o.bits))
    local each, ranks = s.owed.shape[2], orrery.axis_size(axis)
    local _, n = share(g.shape, ranks)
    local flat = (g + s.residual):reshape(-1):cast "f32"
    local rows = flat:pad(1, each * ranks):reshape(ranks, each)
    local bytes, scale = code.pack(rows, counted(orrery.iota(ranks, "i64"):reshape(ranks, 1), each, n))
    s.residual = (rows - code.unpack(bytes, scale)):reshape(-1):slice(1, 1, n):reshape(g.shape):cast(g.dtype)
    local mine = code.unpack(bytes:all_to_all(axis), scale:all_to_all(axis)):sum(1, { keep = true }) + s.owed
    local me = orrery.coordinate(axis)
    mine = mine * (orrery.iota(each, "i64"):reshape(1, each) + me * each):lt(n):cast(mine.dtype)
    bytes, scale = code.pack(mine, counted(me, each, n))
    s.owed = (mine - code.unpack(bytes, scale)):cast(g.dtype)
    local all = code.unpack(bytes:all_gather(axis), scale:all_gather(axis))
    return all:reshape(-1):slice(1, 1, n):reshape(g.shape):cast(g.dtype)
  end,
}
