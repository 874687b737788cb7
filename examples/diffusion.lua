-- SPDX-License-Identifier: Apache-2.0
--
-- A denoising diffusion model (Ho et al., arXiv:2006.11239): a U-Net that is told the time learns which noise was put
-- into an image. Images are made out of noise, of which an average of the weights takes a little away at a time. Trains
-- on half of all rectangles with sides of 3 to 6. Prints some that it makes up, and how many of 100 are rectangles: 87
-- after the default steps, 37 of which it has not seen in training.
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local args = orrery.args {
  steps = 1500, batch = 32, size = 8, width = 16, times = 100, keep = 0.995, lr = 2e-3, samples = 100, show = 3,
  microbatches = 2, every = 250, seed = 1,
}
orrery.seed(args.seed)

-- An image as text. The pixels of a rectangle are 1, all others -1.
local function text(image)
  local marks = {}
  for i, value in ipairs(image) do marks[i] = (value > 0 and "#" or ".") .. (i % args.size == 0 and "\n" or "") end
  return table.concat(marks)
end
local spans, seen, rectangles = {}, {}, {}
for first = 1, args.size do
  for last = first + 2, math.min(first + 5, args.size) do spans[#spans + 1] = { first, last } end
end
local function within(span, i) return span[1] <= i and i <= span[2] end
for _, high in ipairs(spans) do
  for _, wide in ipairs(spans) do
    local image = {}
    for i = 0, args.size ^ 2 - 1 do
      image[i + 1] = within(high, i // args.size + 1) and within(wide, i % args.size + 1) and 1 or -1
    end
    rectangles[text(image)] = math.random() < 0.5 and "seen" or "new"
    if rectangles[text(image)] == "seen" then seen[#seen + 1] = image end
  end
end

local function conv(inputs, outputs, stride) return nn.conv2d(inputs, outputs, 3, { stride = stride, padding = 1 }) end
local function norm(channels) return nn.sequential { nn.groupnorm(4, channels), nn.silu } end
-- Two convolutions beside a way around them; the time adds to each channel.
local Block = nn.module("Block", function(m, inputs, outputs)
  m.before, m.conv1 = norm(inputs), conv(inputs, outputs)
  m.time = nn.linear(4 * args.width, outputs)
  m.between, m.conv2 = norm(outputs), conv(outputs, outputs)
  m.around = inputs == outputs and nn.identity or nn.conv2d(inputs, outputs, 1)
  return function(x, time)
    local y = m.conv1(m.before(x)) + m.time(time):reshape(-1, outputs, 1, 1)
    return m.conv2(m.between(y)) + m.around(x)
  end
end)
local UNet = nn.module("UNet", function(m)
  local c = args.width
  m.time = nn.sequential { nn.linear(c, 4 * c), nn.silu, nn.linear(4 * c, 4 * c), nn.silu }
  m.enter, m.down1, m.down2 = conv(1, c), conv(c, c, 2), conv(2 * c, 2 * c, 2)
  m.left1, m.left2, m.bottom = Block(c, c), Block(c, 2 * c), Block(2 * c, 2 * c)
  m.right2, m.right1 = Block(4 * c, 2 * c), Block(3 * c, c)
  m.up, m.leave = nn.upsample(2), nn.sequential { norm(c), conv(c, 1), nn.flatten }
  return function(x, t) -- [samples, pixels] and [samples, 1]
    local angles = t * (orrery.iota(c // 2):cast "f32" * (-2 * math.log(10000) / c)):exp()
    local time = m.time(orrery.concat { angles:sin(), angles:cos() })
    local fine = m.left1(m.enter(x:reshape(-1, 1, args.size, args.size)), time)
    local coarse = m.left2(m.down1(fine), time)
    local y = m.up(m.bottom(m.down2(coarse), time))
    y = m.up(m.right2(orrery.concat({ y, coarse }, 2), time))
    return m.leave(m.right1(orrery.concat({ y, fine }, 2), time))
  end
end)
local model = UNet()
local average = nn.averaged(model, { decay = args.keep })

-- How much noise each time adds, and how much of the image is left then.
local betas, left = {}, {}
for t = 1, args.times do
  betas[t] = math.min((1e-4 + (0.02 - 1e-4) * (t - 1) / (args.times - 1)) * 1000 / args.times, 0.999)
  left[t] = (left[t - 1] or 1) * (1 - betas[t])
end
local beta_at = orrery.buffer({ args.times }, { init = orrery.tensor(betas) })
local left_at = orrery.buffer({ args.times }, { init = orrery.tensor(left) })

local run = orrery.compile(function(batch)
  local t = (orrery.uniform { batch.x.shape[1], 1 } * args.times):floor() -- one for each sample
  local noise, kept = orrery.normal(batch.x), left_at:take(t:cast "i64")
  return nn.mse(model(batch.x * kept:sqrt() + noise * (1 - kept):sqrt(), t), noise)
end, {
  params = model, microbatches = args.microbatches, strategy = strategy.data {}, clip = 1,
  optimizer = optim.adam { lr = optim.linear { peak = args.lr, warmup = args.steps // 10, steps = args.steps } },
})
local data = orrery.data.arrays { x = orrery.tensor(seen, "f32") }
for step, batch in data:batches { size = args.batch, steps = args.steps } do
  local result = run:step(batch)
  if step % args.every == 0 or step == args.steps then orrery.log("step %d loss %.4f", step, result:mean()) end
end

-- One step back in time; the last one, to time 0, adds no noise of its own.
local back = orrery.func(function(x, t)
  local beta, kept = beta_at:take(t), left_at:take(t)
  local noise = average(x, orrery.zeros { args.samples, 1 } + t)
  return (x - noise * (beta / (1 - kept):sqrt())) / (1 - beta):sqrt() + orrery.normal(x) * (beta * t:gt(0)):sqrt()
end)
local x = orrery.func(function() return orrery.normal { args.samples, args.size ^ 2 } end)()
for t = args.times - 1, 0, -1 do x = back(x, t) end
local found = { seen = 0, new = 0 }
for i, image in ipairs(x:tolist()) do
  local kind = rectangles[text(image)]
  if kind then found[kind] = found[kind] + 1 end
  if i <= args.show then orrery.log("%s", text(image)) end
end
orrery.log("%d of %d are rectangles, %d of them not seen in training", found.seen + found.new, args.samples, found.new)
orrery.log("digest %s", orrery.digest { model = model, average = average })
