-- SPDX-License-Identifier: Apache-2.0
-- A module beside the scripts.
local M = {}

function M.twice(x) return 2 * x end
function M.broken() return nowhere end

return M
