-- SPDX-License-Identifier: Apache-2.0
--
-- Distributed Lion, a strategy in a user's file: each rank keeps the momentum of its own gradients and sends one
-- bit of each element, the sign of its Lion update; what the optimizer gets is the majority's sign.
--
--   optimizer = optim.sgd { lr = 1e-4 }, strategy = { require "strategies.lion_vote" {} }
--
-- Liu et al., "Communication Efficient Distributed Training with Distributed Lion", NeurIPS 2024
-- (arXiv:2404.00438).
local orrery = require "orrery"

local bit_weights = { 1, 2, 4, 8, 16, 32, 64, 128 }

-- The signs of x[n], zeros as +1, in bytes; and back, of the bytes of several ranks [ranks, bytes].
local function pack(x)
  local n = x.shape[1]
  local room = (n + 7) // 8 * 8
  local bits = x:ge(0):cast "f32"
  if room > n then bits = orrery.concat({ bits, orrery.zeros({ room - n }, "f32") }, 1) end
  return (bits:reshape(room // 8, 8) * orrery.tensor(bit_weights, "f32")):sum(2):cast "u8"
end

local function unpack_signs(bytes, n)
  local ranks, width = bytes.shape[1], bytes.shape[2]
  local bits = (bytes:cast "f32":reshape(ranks, width, 1) / orrery.tensor(bit_weights, "f32")):floor()
  bits = bits - (bits / 2):floor() * 2
  return (bits * 2 - 1):reshape(ranks, width * 8):slice(2, 1, n)
end

return orrery.strategy.define {
  name = "lion_vote", class = "approx", axis = "voter",
  options = { beta1 = 0.9, beta2 = 0.99, size = 0 },
  states = { momentum = { init = "zeros", varying = true, leave = "mean" } },
  exchange = function(g, s, o, axis)
    local ranks, n = orrery.axis_size(axis), 1
    for _, d in ipairs(g.shape) do n = n * d end
    local mine = g * ranks  -- a hook is given the rank's summand of the mean
    local votes = pack((s.momentum * o.beta1 + mine * (1 - o.beta1)):reshape(-1):cast "f32")
    s.momentum = s.momentum * o.beta2 + mine * (1 - o.beta2)
    local signs = unpack_signs(votes:reshape(1, votes.shape[1]):all_gather(axis), n)
    return signs:sum(1):sign():reshape(g.shape):cast(g.dtype)
  end,
}
