-- SPDX-License-Identifier: Apache-2.0
--
-- Activations for layers.lua, as layer_cases.lua has layers. function_cases.py has the same ones.
local dims = { 3, 4, 6 }

local function plain(name) return { (name:gsub("_", " ")), function(nn) return nn[name] end, dims, dims } end
local function with(name, options)
  return { name .. " with", function(nn) return function(x) return nn[name](x, options) end end, dims, dims }
end

local cases = {
  { "normalize", function(nn) return nn.normalize() end, dims, dims },
  { "normalize one", function(nn) return nn.normalize { p = 1, dim = 2 } end, dims, dims },
  { "normalize three", function(nn) return nn.normalize { p = 3, dim = 1 } end, dims, dims },
  { "normalize largest", function(nn) return nn.normalize { p = math.huge } end, dims, dims },
  { "normalize short", function(nn) return function(x) return nn.normalize(x, { eps = 5 }) end end, dims, dims },
  { "softmax of channels", function(nn) return nn.softmax { dim = 2 } end, dims, dims },
  { "log softmax of rows", function(nn) return nn.log_softmax(1) end, dims, dims },
  { "gelu none", function(nn) return nn.gelu "none" end, dims, dims },
  { "cosine similarity", function(nn) return nn.cosine_similarity end, dims, { 3, 4 }, { { dims, "real" } } },
  { "cosine similarity of channels", function(nn)
    return function(a, b) return nn.cosine_similarity(a, b, { dim = 2 }) end
  end, dims, { 3, 6 }, { { dims, "real" } } },
  { "cosine similarity of all", function(nn)
    return function(a, b) return nn.cosine_similarity(a:unsqueeze(2), b:unsqueeze(1)) end
  end, { 3, 5 }, { 3, 4 }, { { { 4, 5 }, "real" } } },
  with("softplus", { beta = 0.7 }), with("elu", { alpha = 1.5 }),
  { "leaky relu with", function(nn) return function(x) return nn.leaky_relu(x, { slope = -0.2 }) end end, dims, dims },
  { "glu", function(nn) return nn.glu end, dims, { 3, 4, 3 } },
  { "glu of channels", function(nn) return function(x) return nn.glu(x, 2) end end, dims, { 3, 2, 6 } },
  { "prelu", function(nn) return nn.prelu() end, dims, dims },
  { "prelu of channels", function(nn) return nn.prelu(4) end, dims, dims },
}
for _, name in ipairs { "log_softmax", "softplus", "logsigmoid", "elu", "selu", "leaky_relu", "hardswish", "hardsigmoid",
  "mish", "identity" } do
  cases[#cases + 1] = plain(name)
end
return cases
