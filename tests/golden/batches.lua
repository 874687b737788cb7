-- SPDX-License-Identifier: Apache-2.0
--
-- Loss and gradient norm of one batch of 7 from the golden weights, cut into microbatches that are
-- padded, uneven and empty; `weighted` adds weights of positions and labels that do not count.
local orrery = require "orrery"
local models = require "models"
local nn, optim = orrery.nn, orrery.optim
local args = orrery.args { dir = "tests/golden", case = { "even", "weighted" }, microbatches = 1 }

local function file(name) return ("%s/%s.npy"):format(args.dir, name) end

local model = models.gpt { vocab = 65, positions = 16, dim = 32, heads = 2, layers = 2 }
model:load_weights(args.dir .. "/gpt.safetensors")

local fields = { x = file "ragged.x", y = file "ragged.y", w = file "ragged.w" }
local function loss(batch)
  return nn.cross_entropy(model(batch.x), batch.y, { weights = batch.w, ignore = -1 })
end
if args.case == "even" then
  fields = { x = file "gpt.x", y = file "gpt.y" }
  loss = function(batch) return nn.cross_entropy(model(batch.x), batch.y) end
end

local run = orrery.compile(loss, {
  params = model, optimizer = optim.sgd { lr = 0.1 }, microbatches = args.microbatches, clip = 1.0,
})
local result = run:step(orrery.data.arrays(fields):batch(1, { size = 7, shuffle = false }))
orrery.log("%.9g %.9g", result:mean(), result:get "grad_norm")
