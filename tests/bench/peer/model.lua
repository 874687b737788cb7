-- SPDX-License-Identifier: Apache-2.0
--
-- The model of a workload (Workload.script_arguments in workloads.py): an MLP of `widths`, one of larger.lua, or a GPT.
local models = require "golden.models"
local larger = require "bench.peer.larger"

return function(args)
  if args.model ~= "" then return larger[args.model](args) end
  if args.widths == "" then return models.gpt(args) end
  local widths = {}
  for width in args.widths:gmatch "%d+" do widths[#widths + 1] = tonumber(width) end
  return models.mlp(widths)
end
