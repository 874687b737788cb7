-- SPDX-License-Identifier: Apache-2.0
--
-- Advantage actor-critic (Mnih et al., arXiv:1602.01783) balances a pole on a cart (Barto, Sutton and Anderson, 1983):
-- an episode ends when the pole leans by 12 degrees, the cart is 2.4 m away, or after 500 pushes. Several carts are
-- pushed at once, and a step learns from the last `horizon` pushes of each. Prints how many pushes the last 100
-- episodes took: 21 without training, 500 after the default steps.
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local args = orrery.args {
  steps = 600, batch = 256, horizon = 16, microbatches = 2, hidden = 64, lr = 0.01, discount = 0.98, entropy = 0.01,
  every = 50, seed = 1,
}
if args.batch % args.horizon ~= 0 then orrery.fail "batch must be a multiple of horizon" end
orrery.seed(args.seed)
local limit, count = 500, args.batch // args.horizon

-- A cart at rest near the middle: its place and speed, the pole's angle and speed.
local function start()
  local state = {}
  for i = 1, 4 do state[i] = math.random() * 0.1 - 0.05 end
  return state
end

-- The state 0.02 s later of a cart of 1 kg, with a pole of 0.1 kg and 1 m, pushed by 10 N; and whether it has failed.
local function push(state, right)
  local x, speed, angle, turning = table.unpack(state)
  local sine, cosine = math.sin(angle), math.cos(angle)
  local pushed = ((right and 10.0 or -10.0) + 0.05 * turning ^ 2 * sine) / 1.1
  local angular = (9.8 * sine - cosine * pushed) / (0.5 * (4 / 3 - 0.1 * cosine ^ 2 / 1.1))
  local along = pushed - 0.05 * angular * cosine / 1.1
  local new = { x + 0.02 * speed, speed + 0.02 * along, angle + 0.02 * turning, turning + 0.02 * angular }
  return new, math.abs(new[1]) > 2.4 or math.abs(new[3]) > math.rad(12)
end

local function net(outputs)
  return nn.sequential { nn.linear(4, args.hidden), nn.tanh, nn.linear(args.hidden, outputs) }
end
local agent = { actor = net(2), critic = net(1) }

local function loss(batch)
  local logits = agent.actor(batch.state)
  local advantage = batch.gain - agent.critic(batch.state):reshape(-1)
  local actor = (nn.cross_entropy(logits, batch.action, { reduction = "none" }) * advantage:stop_gradient()):mean()
  local entropy = (nn.softmax(logits) * nn.log_softmax(logits)):sum(-1):mean() * -1
  return actor + 0.5 * (advantage * advantage):mean() - args.entropy * entropy, { entropy = entropy }
end

local run = orrery.compile(loss, {
  params = agent, microbatches = args.microbatches, strategy = strategy.data {}, clip = 0.5,
  optimizer = optim.adam { lr = optim.linear { peak = args.lr, steps = args.steps } },
})
local act = orrery.func(function(state) return orrery.categorical(agent.actor(state)) end)
local expect = orrery.func(function(state) return agent.critic(state):reshape(-1) end)

local carts, pushes, lengths = {}, {}, {}
for i = 1, count do carts[i], pushes[i] = start(), 0 end

-- Pushes every cart once, for a reward of 1, and starts anew what has ended. An episode that reaches the limit is
-- rewarded with what the critic expects of its going on.
local function play()
  local moment = { state = carts, action = act(carts):tolist(), reward = {}, ended = {} }
  local after, failed = {}, {}
  for i, state in ipairs(carts) do after[i], failed[i] = push(state, moment.action[i] == 1) end
  local expected
  carts = {}
  for i, state in ipairs(after) do
    pushes[i], moment.reward[i] = pushes[i] + 1, 1.0
    local cut = pushes[i] == limit and not failed[i]
    if cut then
      expected = expected or expect(after):tolist()
      moment.reward[i] = 1.0 + args.discount * expected[i]
    end
    moment.ended[i] = failed[i] or cut
    if moment.ended[i] then
      table.insert(lengths, pushes[i])
      carts[i], pushes[i] = start(), 0
    else
      carts[i] = state
    end
  end
  return moment
end

-- `horizon` moments as one batch. An action gains the rewards that follow and what the critic expects of the last
-- state. All ranks play the same games, for they draw the same numbers.
local function experience()
  local moments, batch = {}, { state = {}, action = {}, gain = {} }
  for t = 1, args.horizon do moments[t] = play() end
  local gain = expect(carts):tolist()
  for t = args.horizon, 1, -1 do
    local moment = moments[t]
    for i = 1, count do
      gain[i] = moment.reward[i] + (moment.ended[i] and 0 or args.discount * gain[i])
      table.insert(batch.state, moment.state[i])
      table.insert(batch.action, moment.action[i])
      table.insert(batch.gain, gain[i])
    end
  end
  return batch
end

for step = 1, args.steps do
  local result = run:step(experience())
  if step % args.every == 0 or step == args.steps then
    local last = { table.unpack(lengths, math.max(1, #lengths - 99)) }
    local sum = 0
    for _, length in ipairs(last) do sum = sum + length end
    orrery.log("step %d entropy %.3f, the last %d of %d episodes took %.1f pushes", step, result:get "entropy", #last,
      #lengths, sum / math.max(1, #last))
  end
end
orrery.log("digest %s", orrery.digest(agent))
