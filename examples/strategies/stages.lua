-- SPDX-License-Identifier: Apache-2.0
--
-- A pipeline of one's own: the model is cut into stages with about equally many weights, and each stage alternates
-- forward and backward once it is filled (1F1B). Stages, and the order of their work, are these few lines.
--
--   strategy = { require "strategies.stages" {} }
--
-- Narayanan et al., "PipeDream: Generalized Pipeline Parallelism for DNN Training", SOSP 2019.
local orrery = require "orrery"
local strategy = orrery.strategy

-- The model's parts in the order of their first op, {name =, bytes = of their parameters}: elements of lists of modules
-- ("blocks.1") and modules of the top.
local function parts_of(draft)
  local parts, by_name, first = {}, {}, {}
  for _, v in ipairs(draft:values "activation") do
    local path = v.region:match "^[^.]*%.(.*)$" -- without the name of the model
    local name = path and (path:match "^[^.]+%.%d+" or path:match "^[^.]+")
    if name and v.runs == "forward" then first[name] = math.min(first[name] or v.maker, v.maker) end
  end
  for name in pairs(first) do
    by_name[name] = { name = name, bytes = 0 }
    parts[#parts + 1] = by_name[name]
  end
  table.sort(parts, function(a, b) return first[a.name] < first[b.name] end)
  for _, p in ipairs(draft:values "param") do
    local part = by_name[p.name:match "^[^.]+%.%d+"] or by_name[p.name:match "^[^.]+"]
    if part then part.bytes = part.bytes + p.bytes end
  end
  return parts
end

-- The names of n runs of parts, with commas between; a run ends where its bytes come nearest to their share.
local function runs_of(parts, n)
  local runs, all, done = {}, 0, 0
  for _, part in ipairs(parts) do all = all + part.bytes end
  for i, part in ipairs(parts) do
    local full = (done + part.bytes / 2) * n >= all * #runs
    local must = n - #runs >= #parts - i + 1 -- as many runs are left as parts
    if #runs == 0 or #runs < n and (full or must) then runs[#runs + 1] = {} end
    table.insert(runs[#runs], part.name)
    done = done + part.bytes
  end
  for i, names in ipairs(runs) do runs[i] = table.concat(names, ",") end
  return runs
end

return strategy.define {
  name = "my_stages", class = "exact",
  provides = "an order of microbatches,stages", conflicts = "an order of microbatches,stages",
  options = { size = 0 },
  transform = function(draft, o)
    local ranks, where = draft:axis("pipe", o.size), {}
    local runs = runs_of(parts_of(draft), ranks)
    if #runs < ranks then orrery.fail(("my_stages: %d stages for %d ranks"):format(#runs, ranks)) end
    for rank = 1, ranks do where[rank] = rank - 1 end
    draft:stage("pipe", where, runs)
  end,
  schedule = function(stage, stages, microbatches)
    local cells, ahead = {}, math.min(microbatches, stages - 1 - stage)
    for i = 0, ahead - 1 do cells[#cells + 1] = "F" .. i end
    for i = 0, microbatches - 1 do
      if ahead + i < microbatches then cells[#cells + 1] = "F" .. (ahead + i) end
      cells[#cells + 1] = "B" .. i
    end
    return cells
  end,
  predict = function(query) return query.op == "send" and query.elements * query.element_bytes or 0 end,
}
