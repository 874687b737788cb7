-- SPDX-License-Identifier: Apache-2.0
--
-- Why a step takes as long as it does: figures of this plan behind the part of the time that is largest.
local words = require "orrery.plan.words"

local M = {}

local function count_of(kind)
  local n = 0
  for _, run in ipairs(kind.ranks) do n = n + run[2] - run[1] + 1 end
  return n
end

-- A step's mean over all ranks of what of(kind) gives.
local function mean(step, of)
  local sum = 0
  for _, kind in ipairs(step.kinds) do sum = sum + of(kind) * count_of(kind) end
  return sum / step.ranks
end

local function part_of(kind, wanted)
  for _, part in ipairs(kind.time) do
    if part.what == wanted.what and part.axis == wanted.axis then return part.share end
  end
  return 0
end

-- The kind of ranks whose time has most of the part.
local function worst(step, part)
  local found
  for _, kind in ipairs(step.kinds) do
    if not found or part_of(kind, part) > part_of(found, part) then found = kind end
  end
  return found
end

local function products(step, part)
  local flops = mean(step, function(kind)
    local sum = 0
    for _, n in pairs(kind.product_flops) do sum = sum + n end
    return sum
  end)
  local text = ("a rank's products run at %.4g TFLOP/s"):format(1e-12 * flops / (part.share * step.step_seconds))
  local again = 1 - step.model_flops / (flops * step.ranks)
  return again > 5e-3 and ("%s, and %.3g %% of them repeat others"):format(text, 100 * again) or text
end

-- The two ops whose launches have most of `what` ("flops", "bytes", "launches"), products aside.
local function ops(what, unit, scale)
  return function(step, part)
    local kind, sum, rest = worst(step, part), 0, {}
    for _, one in ipairs(kind.launches) do
      if not one.kind:find "^matmul" and not one.kind:find "^attention" then rest[#rest + 1] = one end
      sum = sum + one[what]
    end
    table.sort(rest, function(a, b) return a[what] > b[what] end)
    local names = {}
    for i = 1, math.min(2, #rest) do
      names[i] = ("%s %.3g %%"):format(rest[i].kind, 100 * rest[i][what] / math.max(sum, 1))
    end
    return ("of %.4g %s a step on %s: %s"):format(sum * scale, unit, words.ranks(kind.ranks), table.concat(names, ", "))
  end
end

local function exposed(step, part)
  local kind, largest = worst(step, part), nil
  for _, e in ipairs(kind.traffic.exchanges) do
    if e.axis == part.axis and (not largest or e.sent_bytes > largest.sent_bytes) then largest = e end
  end
  local sent = kind.sent_bytes[part.axis] or 0
  local text = ("%s send %s a step over %s, and wait %s"):format(words.ranks(kind.ranks), words.size(sent), part.axis,
    words.duration(part_of(kind, part) * step.step_seconds))
  return largest and ("%s; most in %d x %s by %s"):format(text, largest.times, largest.op, largest.origin) or text
end

local function uneven(step)
  local least, most
  for _, kind in ipairs(step.kinds) do
    if not least or kind.compute_seconds < least.compute_seconds then least = kind end
    if not most or kind.compute_seconds > most.compute_seconds then most = kind end
  end
  if most.compute_seconds - least.compute_seconds < 1e-3 * step.step_seconds then
    return ("every rank computes for %s"):format(words.duration(most.compute_seconds))
  end
  return ("%s compute for %s, %s for %s"):format(words.ranks(most.ranks), words.duration(most.compute_seconds),
    words.ranks(least.ranks), words.duration(least.compute_seconds))
end

local function bubble(step, part)
  for _, axis in ipairs(step.mesh) do
    if axis.axis == part.axis then
      return ("%d stages for %d microbatches; %s"):format(axis.size, step.microbatches, uneven(step))
    end
  end
end

local function offload(step, part)
  local read, written = 0, 0
  for _, copies in ipairs(worst(step, part).traffic.copies) do
    read, written = read + copies.read_bytes, written + copies.written_bytes
  end
  return ("%s are read and %s written a step"):format(words.size(read), words.size(written))
end

local reasons = {
  products = products, arithmetic = ops("flops", "GFLOP", 1e-9), memory = ops("bytes", "GB", 1e-9),
  launches = ops("launches", "launches", 1), exposed = exposed, bubble = bubble, offload = offload, blocked = uneven,
  imbalance = uneven,
}

-- One line: the figures, and what comes next.
function M.text(step)
  local rest = {}
  for i = 2, 4 do
    local part = step.time[i]
    if part and part.share >= 0.01 then
      rest[#rest + 1] = ("%.0f %% %s%s"):format(100 * part.share, part.what, part.axis and " on " .. part.axis or "")
    end
  end
  local text = reasons[step.time[1].what](step, step.time[1])
  return #rest > 0 and ("%s; then %s"):format(text, table.concat(rest, ", ")) or text
end

return M
