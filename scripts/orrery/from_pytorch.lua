-- SPDX-License-Identifier: Apache-2.0
--
-- docs/from-pytorch.md: what a script in PyTorch is called here, of the list that errors take their words from.
local names = require "orrery.pytorch_names"

local head = [[# From PyTorch

Each of PyTorch's names below is an error in Orrery that says what its line here says. Made by `orrery stubs` from the
list that the errors use; [how-to.md](how-to.md) shows whole programs, [api.md](api.md) lists all calls.

## A script

```lua
local orrery = require "orrery" -- import torch
local nn, optim = orrery.nn, orrery.optim
orrery.seed(1) -- torch.manual_seed(1)
local data = orrery.data.arrays { x = { { 0.0 }, { 1.0 }, { 2.0 } }, y = { { 1.0 }, { 3.0 }, { 5.0 } } } -- TensorDataset

local Net = nn.module("Net", function(m, width) -- class Net(nn.Module): def __init__(self, width)
  m.first, m.second = nn.linear(1, width), nn.linear(width, 1)
  return function(x) return m.second(m.first(x):relu()) end -- def forward(self, x)
end)
local model = Net(16)

local function loss(batch) return nn.mse(model(batch.x), batch.y) end
local run = orrery.compile(loss, { params = model, optimizer = optim.adamw { lr = 1e-2 }, clip = 1.0 })
for step, batch in data:batches { size = 3, epochs = 2 } do -- for batch in DataLoader(data, 3, shuffle=True)
  local result = run:step(batch) -- zero_grad, forward, backward, clip_grad_norm_, optimizer.step
  print(step, result:mean()) -- loss.item()
end
local predict = orrery.func(function(x) return model(x) end) -- model.eval(), torch.no_grad()
print(predict(orrery.tensor { { 4.0 } }):item())
model:save_weights "model.safetensors" -- torch.save(model.state_dict(), ...)
```

A loss is a function that is read once and compiled, as `torch.compile` does, so tensors in it have no numbers: what is
to be seen is returned beside the loss, `return loss, { accuracy = a }`, and read by `result:get "accuracy"`. Random
numbers, dropout and orders of the data are the same on any number of ranks.

## What no error tells

- Dims and places count from 1, and from -1 at the end: `x:transpose(1, 2)` swaps the first two. Ids of classes, of rows
  (`x:gather(ids)`) and what `argmax`, `topk` and `sort` return count from 0, as in files of data.
- Ranges include both ends: `x:slice(2, 1, 3)` has three elements, PyTorch's `x[:, 0:3]`.
- `orrery.concat` and `softmax` take the last dim if none is named; what is divided by in `var` and `std` is n - 1, as in
  PyTorch.
- Twice the batch, `torch.cat([a, b])` of samples, is `orrery.stack({ a, b }, 2):flatten(1, 2)`: two rows for each
  sample, one after another, which `y:view(batch, 2, -1):unbind(2)` takes apart again.
- Recurrent layers and attention have the batch first, and return what `batch_first=True` does.
- Schedules count the steps as PyTorch's do: the first step has the full rate, or the first one after a warm-up of w steps,
  of which step k has k / w, and the rate at which a schedule ends comes after its last step.
- A function of `nn` without its tensor is a layer: `nn.relu()`, `nn.leaky_relu(0.2)`, `nn.softmax { dim = 2 }` stand in
  `nn.sequential`.
- `gelu` is the tanh form; `nn.gelu_exact` is PyTorch's default.
]]

local titles = {
  Tensor = "Tensors", orrery = "torch", nn = "torch.nn", optim = "torch.optim", strategy = "Strategies", Module = "Modules",
  Run = "Runs, from orrery.compile", StepResult = "Results of a step", data = "torch.utils.data",
  Dataset = "Datasets", global = "Python",
}

-- A text inside of a cell of a table.
local function cell(text) return (text:gsub("|", "\\|")) end
local function code(text) return text == "" and "" or "`" .. cell(text) .. "`" end

local function words_of(text)
  local list = {}
  for word in text:gmatch "%S+" do list[#list + 1] = code(word) end
  return table.concat(list, ", ")
end

local M = {}

function M.page()
  local list = { head }
  local function add(format, ...) list[#list + 1] = format:format(...) end
  add("\n## Called the same\n\nOf tensors: %s.\n\nOf `orrery`: %s.\n", words_of(names.same.Tensor), words_of(names.same.orrery))
  add "\n## Called the same, and something else\n\n| Name | Here |\n| --- | --- |\n"
  for name, what in pairs(names.other) do add("| %s | %s |\n", code(name), cell(what)) end
  for _, owner in ipairs(names.owners) do
    add("\n## %s\n\n| PyTorch | Orrery | |\n| --- | --- | --- |\n", titles[owner])
    for _, entry in ipairs(names[owner]) do add("| %s | %s | %s |\n", code(entry[1]), code(entry[2]), cell(entry[3] or "")) end
  end
  add "\n## Options\n\n| PyTorch, Lightning, Keras, nanoGPT | Orrery |\n| --- | --- |\n"
  for name, ours in pairs(names.options) do add("| %s | %s |\n", code(name), words_of(table.concat(ours, " "):gsub(" and ", " "))) end
  return table.concat(list)
end

return M
