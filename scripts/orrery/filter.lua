-- SPDX-License-Identifier: Apache-2.0
--
-- Dataset:filter.
local _, orrery = ...
local define = require "orrery.define"

define([[Dataset:filter(keep: function) -> Dataset; The samples for which keep(sample) is true. It is called once with
    each sample, a table of HostTensors by the names of fields, whose first dim is 1; all ranks must get the same of it.]],
  function(data, keep)
    local kept, position = {}, 0
    for _, batch in data:batches { size = 1, epochs = 1, shuffle = false } do
      local sample = {}
      for name, field in pairs(batch) do sample[name] = field:read() end
      position = position + 1
      if keep(sample) then kept[#kept + 1] = position end
    end
    if #kept == 0 then orrery.fail(("filter: none of %d samples is kept"):format(position)) end
    return data:take(kept)
  end)
