-- SPDX-License-Identifier: Apache-2.0
--
-- What PyTorch calls otherwise: each name of the list is an error that says what to write, and that runs.
local orrery = require "orrery"
local names = require "orrery.pytorch_names"
local nn, optim = orrery.nn, orrery.optim

local folder = os.tmpname()
os.remove(folder)
assert(os.execute("mkdir -p " .. folder))
orrery.tensor({ 1.0, 2.0 }):save(folder .. "/x.npy")

local data = orrery.data.arrays {
  x = { { 1.0, 2.0, 3.0 }, { 4.0, 5.0, 6.0 } }, y = { { 1.0, 0.0, 0.0 }, { 0.0, 1.0, 0.0 } },
}
local images = orrery.data.arrays { x = orrery.tensor({ { { { 1.0, 2.0 }, { 3.0, 4.0 } } } }) }
local batch = data:batch(1, { size = 2 })
local model = nn.sequential { nn.linear(3, 3) }
local function loss(b) return nn.mse(model(b.x), b.y) end
local run = orrery.compile(loss, { params = model, optimizer = optim.sgd {} })
local step = run:step(batch)

local rows = orrery.tensor { { 1.0, 2.0, 3.0 }, { 4.0, 5.0, 6.0 } }
local failed = {}
local function fault(...) failed[#failed + 1] = table.concat({ ... }, "  ") end

-- What the pieces of code see beside Lua's own.
local function variables(tensors)
  local given = {
    orrery = orrery, nn = nn, optim = optim, model = model, run = run, batch = batch, data = data, loss = loss,
    folder = folder .. "/run", path = folder .. "/model.safetensors", result = step,
  }
  for name, value in pairs(tensors) do given[name] = value end
  return setmetatable(given, { __index = _G, __newindex = function(_, name, value) rawset(given, name, value) end })
end

local function try(owner, entry, env)
  local name, code = entry[1], entry[2]:gsub("x%.npy", folder .. "/x.npy")
  if owner == "Dataset" and name == "map" then env.data = images end
  local chunk = load("return " .. code, "=code", "t", env)
  local wrong
  if not chunk then chunk, wrong = load(code, "=code", "t", env) end
  if not chunk then return fault(owner, name, code, wrong) end
  local ok, message = pcall(chunk)
  if not ok then return fault(owner, name, code, message) end
  -- A truth value that nothing reads would be an error at the end of the trace.
  if orrery.type(message) == "Tensor" and message.dtype == "bool" then message:cast "f32" end
end

-- Runs are called, files read and functions compiled outside of traces; all else is tried in one.
local function is_outside(code)
  for _, part in ipairs { "run:", "result:", "data[:.]", "model:", "orrery.func", "value_and_grad", "%.npy", "orrery.compile",
    "orrery.data", "orrery.seed", "nn.averaged" } do
    if code:find(part) then return true end
  end
end

local function with_all(f)
  for _, owner in ipairs(names.owners) do
    assert(#names[owner] > 3, owner)
    for _, entry in ipairs(names[owner]) do
      if entry[2] ~= "" then f(owner, entry) end
    end
  end
end
with_all(function(owner, entry)
  if is_outside(entry[2]) then try(owner, entry, variables { x = rows, y = rows }) end
end)
orrery.func(function(x, y, ids)
  with_all(function(owner, entry)
    if not is_outside(entry[2]) then try(owner, entry, variables { x = x, y = y, ids = ids, q = orrery.zeros { 1, 2, 4 } }) end
  end)
  return x
end)(rows, rows, orrery.tensor { 0, 1 })

-- The names are errors that say it.
local held = { orrery = orrery, nn = nn, optim = optim, strategy = orrery.strategy, Module = model, Run = run, StepResult = step,
  data = orrery.data, Dataset = data }
local function says(object, owner, name, wanted)
  local ok, message = pcall(function() return object[name] end)
  if ok then
    fault(owner, name, "exists")
  elseif not message:find(wanted, 1, true) then
    fault(owner, name, message, "does not say", wanted)
  end
end
for owner, object in pairs(held) do
  for _, entry in ipairs(names[owner]) do says(object, owner, entry[1], names.hint(owner, entry[1])) end
end
for _, entry in ipairs(names.global) do
  local ok, message = pcall(load("return " .. entry[1]))
  if ok or not message:find(names.hint("global", entry[1]), 1, true) then fault("global", entry[1], tostring(message)) end
end
orrery.func(function(x)
  for _, object in ipairs { x, rows, model[1].weight } do
    local its = orrery.type(object)
    for _, entry in ipairs(names.Tensor) do
      says(object, its, entry[1], entry[2] == "" and entry[3] or "write " .. entry[2])
    end
    says(object, its, "add_", "a tensor is never changed in place: write x = x + y")
    says(object, its, "relu_", "a tensor is never changed in place: write x = x:relu(...)")
  end
  return x
end)(rows)
says(orrery, "orrery", "sigmoid", "write x:sigmoid(...)")
says(orrery, "orrery", "ReLU", "write nn.relu")

-- Names that both have are there; those that mean something else say what it is where they are called otherwise.
for owner, list in pairs(names.same) do
  for name in list:gmatch "%S+" do
    local ok, message = true, nil
    if owner == "orrery" then
      ok, message = pcall(function() return orrery[name] end)
    else
      orrery.func(function(x) ok, message = pcall(function() return x[name] end) return x end)(rows)
    end
    if not ok then fault(owner, name, message) end
  end
end
orrery.func(function(x, ids)
  local ok, message = pcall(function() return x:gather(1, ids) end)
  assert(not ok and message:find(":gather: 2 arguments given, at most 1 expected; here it is: rows of a table", 1, true), message)
  ok, message = pcall(function() return x:softmax(2) end)
  assert(not ok and message:find("here it is: of the last dim", 1, true), message)
  return x
end)(rows, orrery.tensor { 0, 1 })
for called in pairs(names.other) do
  local owner, name = called:match "^(.*)%.(.*)$"
  assert(owner == "Tensor" and names.find(owner, name) == nil or orrery[name])
end

-- Options: ours are all of one call of the manual, theirs of none of those.
local manual = io.open "../../../docs/api.md"
local calls = {}
for line in manual:lines() do
  if line:find "^%- %*%*" then calls[#calls + 1] = {} end
  local option = line:match "^  %- `{([%w_]+) = "
  if option then calls[#calls][option] = true end
end
manual:close()
for theirs, list in pairs(names.options) do
  for _, ours in ipairs(list) do
    local found = false
    for _, call in ipairs(calls) do
      local all = true
      for word in ours:gmatch "[%w_]+" do all = all and (word == "and" or call[word]) end
      found = found or all
      if all and call[theirs] then fault(theirs, "a call has it beside", ours) end
    end
    if not found then fault(theirs, "no call has", ours) end
  end
end
local function refused(said, call, ...)
  local ok, why = pcall(call, ...)
  if ok or not tostring(why):find(said, 1, true) then fault(said, tostring(why)) end
end
refused("adam: unknown option 'betas'; write b1 and b2", optim.adam, { betas = { 0.9, 0.99 } })
refused("unknown option 'weight_decay'; write decay", optim.sgd, { weight_decay = 0.1 })
refused("unknown option 'momentum'; optim.momentum has it", optim.sgd, { lr = 0.1, momentum = 0.9 })
refused("unknown option 'learning_rate'; write lr", optim.sgd, { learning_rate = 0.1 })
refused("unknown option 'learning_rate'; write peak", optim.cosine, { learning_rate = 0.1, steps = 1 })
refused("unknown option 'batch_size'; write size", data.batches, data, { batch_size = 2 })
refused("unknown option 'hidden_size'; it has ", optim.adam, { hidden_size = 2 })
refused("adam: options are 0.1, expected a table, such as { b1 = ... }", optim.adam, 0.1)
refused("options are 2, expected a table, such as { size = ... }", data.batches, data, 2)

-- In PyTorch's words, torch.gather along the last dim: element (i, j) is x[i][ids[i][j]].
local picked = orrery.func(function(x, ids)
  local n = x.shape[-1]
  return (x:unsqueeze(2) * ids:one_hot(n)):sum(-1)
end)(rows, orrery.tensor { { 2, 0, 0 }, { 1, 1, 2 } }):tolist()
assert(table.concat(picked[1], " ") == "3.0 1.0 1.0" and table.concat(picked[2], " ") == "5.0 5.0 6.0")

-- The script of the page runs.
local page = io.open "../../../docs/from-pytorch.md"
local script = page:read "a":match "```lua\n(.-)```"
page:close()
assert(load((script:gsub("model%.safetensors", folder .. "/model.safetensors")), "@docs/from-pytorch.md"))()

os.execute(("rm -rf '%s'"):format(folder))
assert(#failed == 0, "\n" .. table.concat(failed, "\n"))
