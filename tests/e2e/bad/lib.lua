-- SPDX-License-Identifier: Apache-2.0
--
-- What the scripts beside it get wrong: eight points, three classes, a linear model.
local orrery = require "orrery"
local nn = orrery.nn
orrery.seed(1)
local x = orrery.tensor(
  { { 1, 2 }, { 3, 4 }, { 5, 6 }, { 7, 8 }, { 1, 1 }, { 2, 2 }, { 3, 3 }, { 4, 4 } }, "f32")
return {
  orrery = orrery, nn = nn, optim = orrery.optim, strategy = orrery.strategy,
  model = nn.linear(2, 3), x = x, y = orrery.tensor({ 0, 1, 2, 0, 1, 2, 0, 1 }, "i32"),
}
