-- SPDX-License-Identifier: Apache-2.0
--
-- nn.freeze(module[, frozen]): excludes all parameters below from training, or includes them again.
local _, orrery = ...
local tree = require "orrery.nn.module_tree"

return function(model, frozen)
  for _, parameter in ipairs(tree.parameters(model)) do parameter:freeze(frozen ~= false) end
  return model
end
