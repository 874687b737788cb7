-- Gated experts whose loads are equal, as benchmarks of mixtures force them to be: a router, each place copied once for
-- each of its experts, and their results weighted and added up. Which expert gets which place is not the router's choice.
local orrery = require "orrery"
local nn = orrery.nn

-- a: dim, hidden (between an expert's layers), experts, top (of a place).
return nn.module("Mixture", function(m, a)
  local function matrices(inputs, outputs)
    local bound = 1 / math.sqrt(inputs)
    return orrery.parameter({ a.experts, inputs, outputs }, { init = nn.init.uniform(-bound, bound) })
  end
  m.router = nn.linear(a.dim, a.experts, { bias = false })
  m.gate, m.up, m.down = matrices(a.dim, a.hidden), matrices(a.dim, a.hidden), matrices(a.hidden, a.dim)
  return function(x)
    local batch, time = x.shape[1], x.shape[2]
    local chances = m.router(x):cast("f32"):softmax():cast(x.dtype)
    local room = time * a.top // a.experts
    local sent = x:reshape(batch, 1, time, a.dim):expand(batch, a.top, time, a.dim)
      :reshape(batch, a.experts, room, a.dim):permute(2, 1, 3, 4):reshape(a.experts, batch * room, a.dim)
    local gate, up = sent:matmul(m.gate:cast(x.dtype)), sent:matmul(m.up:cast(x.dtype))
    local made = (gate:silu() * up):matmul(m.down:cast(x.dtype))
    made = made:reshape(a.experts, batch, room, a.dim):permute(2, 1, 3, 4):reshape(batch, a.top, time, a.dim)
    local weights = chances:slice(3, 1, a.top):permute(1, 3, 2):reshape(batch, a.top, time, 1)
    return (made * weights):sum(2)
  end
end)
