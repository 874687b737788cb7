-- SPDX-License-Identifier: Apache-2.0
--
-- What strategies share that cut sequences: batch fields [batch, time, ...] are placed along their time.
local _, orrery = ...

local M = {}

-- The fields named, in a list or a text with commas; without names, all that have two dims or more.
local function fields_of(draft, who, names)
  names = type(names) == "table" and table.concat(names, ",") or names
  local known, found = {}, {}
  for _, field in ipairs(draft:values "batch") do
    known[field.name] = field
    if not names and #field.dims >= 2 then found[#found + 1] = field end
  end
  for name in (names or ""):gmatch "[^,]+" do
    found[#found + 1] = known[name] or orrery.fail(("%s: there is no batch field '%s'"):format(who, name))
  end
  if #found == 0 then
    orrery.fail(("%s: no batch field has two dims or more, [batch, time, ...]: there is no time to cut"):format(who))
  end
  return found
end

function M.cut(draft, who, axis, names)
  local fields = fields_of(draft, who, names)
  for _, field in ipairs(fields) do
    if field.dims[2] ~= fields[1].dims[2] then
      orrery.fail(("%s: dim 2 is %d in '%s' and %d in '%s', so both cannot be time: name those that have one in "
        .. "`fields`"):format(who, fields[1].dims[2], fields[1].name, field.dims[2] or 0, field.name))
    end
    draft:place(field, axis, 2)
  end
end

return M
