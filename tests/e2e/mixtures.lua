-- SPDX-License-Identifier: Apache-2.0
--
-- nn.switch as the mixtures of other programs are, with the weights in `file` (tests/data/make_mixtures.py): prints for
-- each of its tensors how far y, the loss and the gradients are from what these programs compute.
local orrery = require "orrery"
local nn = orrery.nn
local args = orrery.args { file = "", capacity = 0.0 }
local kinds = {
  mixtral = { experts = 4, top = 2, gated = true, balance = 0.02, balance_over = "all" },
  qwen3 = { experts = 8, top = 3, gated = true },
  qwen2 = { experts = 8, top = 4, gated = true, normalize = false, shared = 2, shared_gate = true },
  deepseek = { experts = 8, top = 3, gated = true, score = "sigmoid", bias_rate = 0.001, scale = 2.5, n_group = 4,
    topk_group = 2, shared = 2 },
  grok = { experts = 8, top = 2, gated = true, act = nn.gelu, normalize = false },
}
local file = orrery.load(args.file)

local function far(ours, theirs)
  local function largest(t) return t:reshape(-1):abs():max() end
  return orrery.func(function(a, b) return largest(a - b) / largest(b) end)(ours, theirs):item()
end

for _, kind in ipairs { "mixtral", "qwen3", "qwen2", "deepseek", "grok" } do
  local o = kinds[kind]
  o.hidden, o.capacity, o.balance = 5, args.capacity > 0 and args.capacity, o.balance or 0
  local layer = nn.switch(6, o)
  layer:load_weights(args.file, {
    strict = false, map = function(name) return name:match("^" .. kind .. "%.(.*)$") end,
  })
  local parameters = orrery.parameters(layer)
  local function wanted(name) return file[kind .. "." .. name] end
  local made = table.pack(orrery.func(function(x, by)
    local y, aux = layer(x)
    local loss = (y * by):sum() + aux.loss
    return y, loss, aux.load, aux.dropped, table.unpack(orrery.grad(loss, { x, table.unpack(parameters) }))
  end)(wanted "x", wanted "by"))
  local names = { "y", "loss", "load", "dropped", "d.x" }
  for _, p in ipairs(parameters) do names[#names + 1] = "d." .. p.name end
  for i, name in ipairs(names) do
    orrery.log("%s %s %.3g", kind, name, name == "dropped" and made[i]:item() or far(made[i], wanted(name)))
  end
end
