-- SPDX-License-Identifier: Apache-2.0
--
-- Files of servers: an address is, wherever a path of one file is taken, the path of its copy, by the data plugin
-- "http".
local _, orrery = ...
local engine = orrery.engine

local M = {}

local schemes = { http = true, https = true, s3 = true, hf = true }

local function is_address(path) return type(path) == "string" and schemes[path:match "^(%w+)://" or ""] or false end

-- A path as it is, an address as the path of the copy.
function M.path(path)
  if not is_address(path) then return path end
  local ok, opened = pcall(engine.open_data, "http", path, {}, {})
  if not ok then
    local missing = tostring(opened):find("no plugin provides data 'http'", 1, true)
    error(missing and path .. ": there is no plugin for files of servers; it is built where libcurl is" or opened, 0)
  end
  return engine.bytes(engine.first(opened))
end

-- The same of a path or a list of them.
function M.paths(paths)
  if type(paths) ~= "table" then return M.path(paths) end
  local list = {}
  for i, path in ipairs(paths) do list[i] = M.path(path) end
  return #list > 0 and list or paths
end

return M
