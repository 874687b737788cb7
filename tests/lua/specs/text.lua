-- SPDX-License-Identifier: Apache-2.0
local orrery = require "orrery"
local text = orrery.data.text("hello world, hello", { ctx = 4, string = true })
assert(text.vocab == 9 and text:decode(text:encode("hold"):tolist()) == "hold")
local count = 0
for step, batch in text:batches { size = 3, steps = 5, from = 2 } do
  count = count + 1
  assert(step == count + 1 and tostring(batch.x.shape) == "[3,4]")
  local x, y = batch.x:read():tolist(), batch.y:read():tolist()
  for row = 1, 3 do
    for i = 1, 3 do assert(x[row][i + 1] == y[row][i]) end
  end
end
assert(count == 4)
local head, tail = text:split(0.5)
assert(head:batch(1, { size = 1, shuffle = false }).x:read():tolist()[1][1] == text:encode("h"):item())
assert(text:decode(tail:batch(1, { size = 1, shuffle = false }).x:read():tolist()[1]) == "ld, ")
