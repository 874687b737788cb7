-- SPDX-License-Identifier: Apache-2.0
--
-- Files that the command line reads and writes.
local _, orrery = ...

local M = {}

-- `option` is the one that names the file, for the error.
function M.write(path, text, option)
  local file, why = io.open(path, "wb")
  local written = file and file:write(text)
  if file and not file:close() then written = nil end
  if not written then
    orrery.engine.fail_usage(("%s%s: cannot write it: %s"):format(option and option .. " " or "", path,
      why or "the disk is full?"))
  end
end

-- The text of a file that is installed with the program.
function M.installed(path)
  local file <close> = io.open(path, "rb")
  local text = file and file:read "a"
  if not text then orrery.fail(("%s cannot be read; install the program again"):format(path)) end
  return text
end

return M
