-- SPDX-License-Identifier: Apache-2.0
--
--- optim.muon(options)
--- Muon (Jordan et al., 2024), for matrices inside of a network: momentum whose singular values are made about equal.
--- Of more than two dims the last two are matrices and those before count them, as [experts, in, out]; the kernel
--- [out, ...] of a convolution is one matrix of `out` rows. Vectors and tables of embeddings are refused: they want
--- another kind, a group's `optimizer`, and so does the last layer.
---@param options? table
---@option lr number|orrery.Schedule=1e-3 the rate, or a function of the step
---@option momentum number|orrery.Schedule=0.95
---@option nesterov boolean=true
---@option decay number|orrery.Schedule=0.1 of the weights themselves
---@option steps integer=5 of the Newton-Schulz iteration
---@option adjust string="original" the rate of a matrix: "original": times sqrt(max(1, rows / columns)); "match_rms_adamw": times 0.2 sqrt(max(rows, columns)), so that rates are as AdamW's
---@option groups table={} {{match =, frozen =, clip_norm =, clip_value =, optimizer = or any option =}, ...}: the first that matches counts; match is a pattern of paths, a function of the parameter or a list of them
---@return orrery.Optimizer
local _, orrery = ...

-- The polynomial of an odd degree whose iteration draws singular values in [0, 1] to about 1.
local a, b, c = 3.4445, -4.775, 2.0315

-- About U V of each matrix U S V of [..., rows, columns] with no more rows than columns.
local function orthogonal(x, steps)
  local norm = #x.shape == 2 and x:sumsq():sqrt() or x:sumsq({ -2, -1 }, { keep = true }):sqrt()
  x = x / norm:maximum(1e-7)
  for _ = 1, steps do
    local square = x:matmul(x, { transpose_b = true })
    x = x * a + (square * b + square:matmul(square) * c):matmul(x)
  end
  return x
end

local rates = {
  original = function(rows, columns) return math.sqrt(math.max(1, rows / columns)) end,
  match_rms_adamw = function(rows, columns) return 0.2 * math.sqrt(math.max(rows, columns)) end,
}

-- Fails for what is no matrix inside of a network.
local function check(p, o)
  local why = #p.shape < 2 and "is no matrix" or (o.held_by.embedding or o.held_by.embedding_bag)
    and "is a table of embeddings, of whose rows a step reads few"
  if not why then return end
  orrery.fail(("muon: '%s' [%s] %s: give it another kind by a group, as in optim.muon{groups = {{match = \"%s\", "
    .. "optimizer = optim.adamw{}}}}"):format(o.path, table.concat(p.shape, ","), why, o.path))
end

-- A parameter's matrices: [rows, columns], or [..., rows, columns] of several.
local function matrices_of(x, o)
  for kind in pairs(o.held_by) do
    if kind:find "^conv" then return x:reshape(x.shape[1], -1) end
  end
  return x
end

return orrery.optim.define("muon", {
  options = { lr = 1e-3, momentum = 0.95, nesterov = true, decay = 0.1, steps = 5, adjust = "original" },
  states = { "m" },
  update = function(p, g, s, o)
    check(p, o)
    local rate = rates[o.adjust] or orrery.fail(("muon: adjust is '%s': write \"original\" or "
      .. "\"match_rms_adamw\""):format(tostring(o.adjust)))
    local m = s.m * o.momentum + g * (1 - o.momentum)
    local x = matrices_of(o.nesterov and g * (1 - o.momentum) + m * o.momentum or m, o)
    local rows, columns = x.shape[-2], x.shape[-1]
    local wide = rows <= columns
    x = orthogonal(wide and x or x:transpose(), o.steps)
    local direction = (wide and x or x:transpose()):reshape(table.unpack(p.shape)) * rate(rows, columns)
    if o.decay ~= 0 then direction = direction + p * o.decay end
    return p - direction * o.lr, { m = m }
  end,
})
