-- SPDX-License-Identifier: Apache-2.0
--
-- Measures the machine that it runs on, all ranks at work, and writes what `orrery plan --machine` reads.
-- Takes a few seconds. dtypes=f32,bf16 measures products of both, of up to size=N; a GPU wants 8192. The way between
-- ranks, and what compute loses meanwhile, is measured where there are several: that between hosts if they are on
-- several, else that inside; the other has the latency= and bandwidth= that you say.
--
--   orrery run -n 2 examples/machine.lua out=machine.json
--   orrery plan -n 2 --machine machine.json examples/gpt.lua
local orrery = require "orrery"
local nn, world = orrery.nn, orrery.world
local args = orrery.args { out = "machine.json", dtypes = "f32", size = 768, latency = 1e-5, bandwidth = 1.25e9 }
orrery.seed(1)

-- Seconds of body(), the best of five on the slowest rank.
local function seconds(body)
  body()
  local best = math.huge
  for _ = 1, 5 do
    world:barrier()
    local start = orrery.time()
    body()
    best = math.min(best, orrery.time() - start)
  end
  return world:allreduce(orrery.tensor({ best }, "f32"), { op = "max" }):item()
end

-- Seconds of one of the ops that `chain(n)` has n of: what a call costs otherwise is in both.
local function seconds_of_one(chain, few, many)
  local function call(n) return orrery.func(function() return chain(n) end) end
  return math.max(1e-9, (seconds(call(many)) - seconds(call(few))) / (many - few))
end

local function random(rows, columns, dtype)
  return orrery.parameter({ rows, columns }, { init = nn.init.normal(columns ^ -0.5), dtype = dtype })
end

-- FLOP/s of chains of one op, by its FLOPs: `chain(size)` returns the op's FLOPs and a function of the number of ops.
local function rates(sizes, chain)
  local points = {}
  for _, size in ipairs(sizes) do
    local flops, ops = chain(size)
    local few = math.max(2, math.min(64, 1e8 // flops))
    points[#points + 1] = { flops, flops / seconds_of_one(ops, few, 4 * few) }
  end
  return points
end

local function products(n, dtype)
  local w = random(n, n, dtype)
  return function(count)
    local x = w
    for _ = 1, count do x = x:matmul(w) end
    return x:cast("f32"):sum()
  end
end

local function matrix_flops(dtype)
  local sizes = { args.size }
  while sizes[1] >= 128 do table.insert(sizes, 1, sizes[1] // 2) end
  return rates(sizes, function(n) return 2 * n ^ 3, products(n, dtype) end)
end

-- Byte/s at which products touch what they touch beside a cube of equal FLOPs, which runs at `rate`: a product of few
-- rows, and a chain in which few columns and a small depth take turns. nil if that takes no time.
local function matrix_bandwidth(dtype, rate)
  local side = args.size // 2
  local few, many = side // 16, 4 * side
  local function one(rows, columns, depth)
    local x, there, back = random(rows, depth, dtype), random(depth, columns, dtype), random(columns, depth, dtype)
    return seconds_of_one(function(count)
      local y = x
      for _ = 1, count do y = y:matmul(there):matmul(back) end
      return y:cast("f32"):sum()
    end, 2, 8) / 2
  end
  local lost = one(few, many, many) + one(many, few, many) - 2 * (2 * side ^ 3 / rate)
  local elements = 2 * few * many + many ^ 2 - 3 * side ^ 2
  return lost > 0 and 2 * elements * dtype:match "%d+" / 8 / lost or nil
end

-- Of attention over `length` positions, four heads of 64 channels.
local function attention_flops(dtype)
  return rates({ 64, 256, 1024 }, function(length)
    local w = random(length, 256, dtype)
    return 4 * length ^ 2 * 256, function(count)
      local x = w:reshape(1, length, 256)
      for _ = 1, count do x = nn.attention(x, x, x, { heads = 4 }) end
      return x:cast("f32"):sum()
    end
  end)
end

-- Of a chain of norms, which compute eight times for each element.
local function norm_seconds(rows, columns, few, many)
  local x, norm = random(rows, columns), nn.layernorm(columns)
  return seconds_of_one(function(count)
    local y = x
    for _ = 1, count do y = norm(y) end
    return y:sum()
  end, few, many)
end

-- Of reading: sums of one tensor.
local function bandwidth(bytes, few, many)
  local x = random(bytes // 4096, 1024)
  return bytes / seconds_of_one(function(count)
    local total = x:sum()
    for _ = 2, count do total = total + x:sum() end
    return total
  end, few, many)
end

-- The step of a model of one number, which is two rounds of messages and little else.
local function round_seconds()
  local w, data = random(1, 1), orrery.data.arrays { x = orrery.tensor { { 1.0 } } }
  local run = orrery.compile(function(batch) return (batch.x * w):mean() end, {
    params = { w }, optimizer = orrery.optim.sgd { lr = 0 }, strategy = orrery.strategy.data {},
  })
  local batch = data:batch(1, { size = world.size })
  return seconds(function() for _ = 1, 20 do run:step(batch) end end) / 40
end

-- How much longer a step takes if the state of n parameters waits in the host's memory meanwhile: Adam has two numbers
-- for each, which all ranks together copy in and out.
local function host_seconds(n)
  local function step(offload)
    local w, data = random(n, 1), orrery.data.arrays { x = orrery.tensor { { 1.0 } } }
    local run = orrery.compile(function(batch) return (batch.x * w:sum()):mean() end, {
      params = { w }, optimizer = orrery.optim.adam { lr = 0 },
      strategy = { orrery.strategy.data {}, orrery.strategy.zero { offload = offload } },
    })
    local batch = data:batch(1, { size = world.size })
    return seconds(function() for _ = 1, 5 do run:step(batch) end end) / 5
  end
  return math.max(4e-9, step "host" - step "none")
end

local function host()
  local n, few = 1 << 21, host_seconds(world.size)
  return { latency = few / 4, bandwidth = 16 * n / world.size / math.max(1e-9, host_seconds(n) - few) }
end

-- Byte/s at which all ranks write files that are on the disk at the end, in the folder for temporary files.
local function disk()
  local file, megabytes = os.tmpname(), 64
  local write = ("dd if=/dev/zero of=%s bs=1M count=%d conv=fsync 2>/dev/null"):format(file, megabytes)
  local took = seconds(function() assert(os.execute(write), "dd could not write " .. file) end)
  os.remove(file)
  return { latency = 1e-4, bandwidth = megabytes * 2 ^ 20 / took }
end

-- A sum of n numbers over P ranks sends 2 (P - 1) / P of them. Each of the `sharers` of a way has a part of it.
local function link(sharers)
  local n, x, one = 1 << 22, random(1 << 12, 1 << 10), random(1, 1)
  local whole = seconds(function() world:allreduce(x) end)
  local bytes = math.max(1e-9, whole - seconds(function() world:allreduce(one) end))
  local sent = 4 * n * 2 * (world.size - 1) / world.size
  local found = { latency = round_seconds(), bandwidth = sent / sharers / bytes }
  -- Products that take about twice as long as the sum, alone and beside it.
  local chain, few = products(256, "f32"), 64
  local one_product = seconds_of_one(chain, few, 4 * few)
  local work = orrery.func(function() return chain(math.max(1, 2 * whole // one_product)) end)
  local alone = seconds(work)
  local beside = seconds(function()
    local sum = world:allreduce_async(x)
    work()
    sum:wait()
  end)
  local lost = math.min(1, (beside - alone) / whole)
  if lost > 0 then found.compute = lost end
  return found
end

local matrix, attention, first = {}, {}, args.dtypes:match "%w+"
for dtype in args.dtypes:gmatch "%w+" do matrix[dtype], attention[dtype] = matrix_flops(dtype), attention_flops(dtype) end
local machine = {
  matrix_flops = matrix,
  attention_flops = attention,
  matrix_bandwidth = matrix_bandwidth(first, matrix[first][#matrix[first] - 1][2]),
  vector_flops = 8 * 128 * 512 / norm_seconds(128, 512, 8, 72),
  launch_seconds = norm_seconds(1, 16, 64, 576),
  memory_bandwidth = bandwidth(1 << 27, 1, 3),
  cache_bandwidth = bandwidth(1 << 19, 8, 72),
  cache_bytes = 1 << 20,
  host = host(),
  disk = disk(),
  ranks_per_host = world.local_size,
  inside = { latency = args.latency, bandwidth = args.bandwidth },
  between = { latency = args.latency, bandwidth = args.bandwidth },
}
if world.size > world.local_size then machine.between = link(world.local_size)
elseif world.size > 1 then machine.inside = link(1) end

local function json(value)
  if type(value) ~= "table" then return ("%.6g"):format(value) end
  local fields = {}
  for i, item in ipairs(value) do fields[i] = json(item) end
  if #fields > 0 then return "[" .. table.concat(fields, ", ") .. "]" end
  for name, field in pairs(value) do fields[#fields + 1] = ('"%s": %s'):format(name, json(field)) end
  return "{ " .. table.concat(fields, ", ") .. " }"
end

if world.rank == 0 then
  local file <close> = assert(io.open(args.out, "w"))
  file:write(json(machine), "\n")
  orrery.log("%s: %s", args.out, json(machine))
end
