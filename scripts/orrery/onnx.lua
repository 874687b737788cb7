-- SPDX-License-Identifier: Apache-2.0
--
-- orrery.save_onnx: what a function of tensors is traced into, as a file of ONNX.
local _, orrery = ...
local engine = orrery.engine
local define = require "orrery.define"
local pb = require "orrery.protobuf"
local Graph = require "orrery.onnx_graph"
local expression = require "orrery.onnx_expression"
local ops = require "orrery.onnx_ops"
local callable = require "orrery.callable"
local lists = require "orrery.lists"
local whole_file = require "orrery.whole_file"

local IR_VERSION, OPSET = 9, 20

-- The ops that results are computed from, as a set.
local function needed(program)
  local maker, all, stack = {}, {}, {}
  for i, op in ipairs(program.ops) do for _, id in ipairs(op.outputs) do maker[id] = i end end
  for _, id in ipairs(program.results) do stack[#stack + 1] = maker[id] end
  while #stack > 0 do
    local i = table.remove(stack)
    if not all[i] then
      all[i] = true
      for _, id in ipairs(program.ops[i].inputs) do stack[#stack + 1] = maker[id] end
    end
  end
  return all
end

local function refusal(path, op)
  return function(what)
    local where = op.line == "" and "" or (" of %s%s"):format(op.line, op.region == "" and "" or ", " .. op.region)
    orrery.fail(("save_onnx: %s: ONNX has no op here for %s%s; leave it out of the function"):format(path, what, where))
  end
end

-- The name of a value that an op reads: a state becomes a tensor of the file.
local function name_of(path, g, program, names, id, refuse)
  local value = program.values[id]
  if names[id] then return names[id] end
  if not value.state then
    if value.name:find "^%$" then refuse "random numbers" end
    refuse(value.name ~= "" and ("the run-time number '%s'"):format((value.name:gsub("^input%.", ""))) or "what a sum or a norm keeps beside its result")
  end
  local tensor = value.state:read() -- of the ranks that hold it, so all read it
  if not g.TYPES[tensor.dtype] then orrery.fail(("save_onnx: %s: ONNX has no %s"):format(path, tensor.dtype)) end
  local name = value.name ~= "" and value.name or g:fresh()
  if g.taken[name] then name = ("%s_%d"):format(name, id) end
  g.taken[name] = true
  names[id] = g:tensor(name, tensor.dtype, value.dims, engine.bytes(tensor))
  return names[id]
end

local function add_op(path, g, program, names, op)
  local refuse = refusal(path, op)
  local inputs, types, made = {}, {}, {}
  local write = op.kind == "pointwise" and expression.outputs or ops[op.kind]
  if not write then refuse(("'%s'"):format(op.kind)) end
  for i, id in ipairs(op.inputs) do
    inputs[i], types[i] = name_of(path, g, program, names, id, refuse), program.values[id]
  end
  for i, id in ipairs(op.outputs) do
    made[i] = program.values[id]
    if not g.TYPES[made[i].dtype] then refuse(made[i].dtype) end
  end
  local outputs
  if op.kind == "pointwise" then
    outputs = write(g, op, inputs, refuse)
  else
    outputs = write(g, op, inputs, types, made, refuse)
  end
  for i, id in ipairs(op.outputs) do names[id] = outputs[i] end
end

-- ValueInfoProto
local function value_info(g, name, value)
  local dims = {}
  for i, extent in ipairs(value.dims) do dims[i] = pb.bytes(1, pb.whole(1, extent)) end
  local tensor = pb.whole(1, g.TYPES[value.dtype]) .. pb.bytes(2, table.concat(dims))
  return pb.bytes(1, name) .. pb.bytes(2, pb.bytes(1, tensor))
end

local function chosen(path, what, given, count, prefix)
  local names = {}
  local wrong = given and (type(given) ~= "table" and engine.describe(given) or lists.fault(given))
  if wrong then orrery.fail(("save_onnx: %s: %s is %s, expected a list of names"):format(path, what, wrong)) end
  if given and #given ~= count then
    orrery.fail(("save_onnx: %s: %s has %d names, of %d tensors"):format(path, what, #given, count))
  end
  for i = 1, count do
    names[i] = given and given[i] or prefix .. i
    if type(names[i]) ~= "string" then
      orrery.fail(("save_onnx: %s: %s has %s, expected a name"):format(path, what, engine.describe(names[i])))
    end
  end
  return names
end

local function graph_of(path, program, o)
  local g, names = Graph.new(), {}
  local inputs = chosen(path, "inputs", o.inputs, #program.inputs, "x")
  local outputs = chosen(path, "outputs", o.outputs, #program.results, "y")
  g.taken = {}
  for _, list in ipairs { inputs, outputs } do
    for _, name in ipairs(list) do
      if g.taken[name] then orrery.fail(("save_onnx: %s: two tensors have the name '%s'"):format(path, name)) end
      g.taken[name] = true
    end
  end
  for i, id in ipairs(program.inputs) do names[id] = inputs[i] end
  local wanted = needed(program)
  for i, op in ipairs(program.ops) do if wanted[i] then add_op(path, g, program, names, op) end end
  local ends = {}
  for i, id in ipairs(program.results) do
    local name = name_of(path, g, program, names, id, refusal(path, { line = "", region = "" }))
    g:add(g.nodes, pb.bytes(1, pb.bytes(1, name) .. pb.bytes(2, outputs[i]) .. pb.bytes(4, "Identity")))
    ends[i] = pb.bytes(12, value_info(g, outputs[i], program.values[id]))
  end
  local begins = {}
  for i, id in ipairs(program.inputs) do begins[i] = pb.bytes(11, value_info(g, inputs[i], program.values[id])) end
  return table.concat(g.nodes) .. pb.bytes(2, "orrery") .. table.concat(g.constants) .. table.concat(begins) .. table.concat(ends)
end

define([[orrery.save_onnx(path: string, fn: any, inputs: table, options?); Writes a function of tensors, or a module, to a
    file of ONNX, as it is outside of training; all ranks call it. `inputs` is a list of HostTensors, whose types and shapes
    the file takes: others are refused by who runs it.
    @option inputs: any = nil; a list of names for the inputs, else x1, x2, ...
    @option outputs: any = nil; a list of names for the results, else y1, y2, ...]],
  function(path, fn, inputs, o)
    if not callable(fn) then
      orrery.fail(("save_onnx: %s: %s given, expected a function or a module"):format(path, engine.describe(fn)))
    elseif lists.fault(inputs) then
      orrery.fail(("save_onnx: %s: inputs are %s, expected a list of HostTensors"):format(path, lists.fault(inputs)))
    end
    local program = engine.traced(function(...) return fn(...) end, inputs)
    if program.updates > 0 then
      orrery.fail(("save_onnx: %s: the function changes buffers, which ONNX cannot; return what it is to keep"):format(path))
    elseif #program.results == 0 then
      orrery.fail(("save_onnx: %s: the function returns no tensor"):format(path))
    end
    local graph = graph_of(path, program, o)
    local model = pb.whole(1, IR_VERSION) .. pb.bytes(2, "orrery") .. pb.bytes(7, graph)
      .. pb.bytes(8, pb.bytes(1, "") .. pb.whole(2, OPSET))
    whole_file.write(path, function(write) write(model) end)
  end)
