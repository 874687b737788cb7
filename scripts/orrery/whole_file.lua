-- SPDX-License-Identifier: Apache-2.0
--
-- Files that other programs read, which rank 0 writes: under another name first, so that one that fails leaves what was
-- there before.
local _, orrery = ...

local M = {}

-- Calls body(write) on every rank; `write` appends texts to the file, and on other ranks does nothing.
function M.write(path, body)
  if orrery.world.rank ~= 0 then return body(function() end) end
  local part = path .. ".part"
  local file, why = io.open(part, "wb")
  local function drop()
    if io.type(file) == "file" then file:close() end
    os.remove(part)
  end
  local function refuse()
    drop()
    orrery.fail(("%s: cannot write: %s"):format(path, why or "the disk is full?"))
  end
  if not file then refuse() end
  local written, fault = pcall(body, function(...)
    local done
    done, why = file:write(...)
    if not done then refuse() end
  end)
  if not written then
    drop()
    error(fault, 0)
  end
  local closed
  closed, why = file:close()
  if closed then closed, why = os.rename(part, path) end
  if not closed then refuse() end
end

return M
