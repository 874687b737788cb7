-- SPDX-License-Identifier: Apache-2.0
--
-- Dataset:filter.
local _, orrery = ...
local engine = orrery.engine
local define = require "orrery.define"

define([[Dataset:filter(keep: function) -> Dataset; The samples for which keep(sample) is true. It is called once with
    each sample, a table of HostTensors by the names of fields; all ranks must get the same of it.]],
  function(data, keep)
    local kept = {}
    for position = 1, #data do
      if keep(engine.sample(data, position)) then kept[#kept + 1] = position end
    end
    if #kept == 0 then orrery.fail(("filter: none of %d samples is kept"):format(#data)) end
    return data:take(kept)
  end)
