---@meta
-- Made by `orrery stubs`; do not edit.
error('this file is for editors; write require "orrery"')

---@alias orrery.DType 'f32'|'f64'|'bf16'|'f16'|'i32'|'i64'|'u8'|'bool'|'f8_e4m3'|'f8_e5m2'
---@alias orrery.Value {id: integer, name: string, dims: integer[], dtype: orrery.DType, bytes: integer, region: string, line: string, op: string, phase: string}
---@alias orrery.Schedule fun(step: integer): number
---@alias orrery.Initial number|orrery.HostTensor|table

---@class orrery.Module: {[string|integer]: any}
---@overload fun(...): orrery.Tensor ...

---@class orrery.Strategy

---@class orrery
---@field nn orrery.nn
---@field optim orrery.optim
---@field strategy orrery.strategy
---@field metrics orrery.metrics
---@field data orrery.data
---@field world orrery.World
local orrery = {}

---Elementwise choice: condition ? yes : no.
---@param condition orrery.Tensor
---@param yes orrery.Tensor|number
---@param no orrery.Tensor|number
---@return orrery.Tensor
function orrery.where(condition, yes, no) end

---Joins tensors along a dim.
---@param tensors any[]
---@param dim? integer
---@return orrery.Tensor
function orrery.concat(tensors, dim) end

---The same values; no gradient flows back.
---@param tensor orrery.Tensor
---@return orrery.Tensor
function orrery.stop_gradient(tensor) end

---How many ranks a mesh axis has.
---@param axis string
---@return integer
function orrery.axis_size(axis) end

---This rank's number on a mesh axis, from 0: i64, differs by rank.
---@param axis string
---@return orrery.Tensor
function orrery.coordinate(axis) end

---Each sample's number in the batch, from 0: i64, one for each sample. The row of x:all_gather("batch") that is its own, as a label.
---@return orrery.Tensor
function orrery.sample_index() end

---Normalises the last dim to mean 0 and variance 1, then w*x + b.
---@param x orrery.Tensor
---@param weight orrery.Tensor
---@param bias orrery.Tensor
---@param eps? number
---@return orrery.Tensor
function orrery.layernorm(x, weight, bias, eps) end

---Divides the last dim by its root mean square, times w.
---@param x orrery.Tensor
---@param weight orrery.Tensor
---@param eps? number
---@return orrery.Tensor
function orrery.rmsnorm(x, weight, eps) end

---@class orrery.attention.Options
---@field heads integer how many heads share the last dim
---@field kv_heads? integer heads of keys and values, each for heads/kv_heads of the queries'; as many if left out
---@field causal? boolean a position sees itself and earlier ones only (default false)
---@field scale? number factor of the scores; 1/sqrt(d) if left out
---@field dropout? number in training, the probability of leaving a weight out (default 0)
---@field mask? orrery.Tensor boolean, which keys are seen: [B,heads,T,S], any dim 1, leading ones left out; for padded sequences [B,1,1,S]
---@field bias? orrery.Tensor added to the scores; dims as a mask's
---@field window? integer a position sees those less than so many places away
---@field offset? orrery.Tensor|number the 0-based place of the first query among the keys; without it the last query stands where the last key does

---Scaled dot-product attention of queries [B,T,heads*d] to keys and values [B,S,kv_heads*d]. A query that sees no key gets zeros.
---@param q orrery.Tensor
---@param k orrery.Tensor
---@param v orrery.Tensor
---@param options orrery.attention.Options
---@return orrery.Tensor
function orrery.attention(q, k, v, options) end

---@class orrery.cross_entropy.Options
---@field weights? orrery.Tensor weight of each position
---@field ignore? integer positions with this label do not count; the mean of none is NaN

---Mean cross-entropy of logits [...,V] and 0-based labels [...].
---@param logits orrery.Tensor
---@param labels orrery.Tensor
---@param options? orrery.cross_entropy.Options
---@return orrery.Tensor
function orrery.cross_entropy(logits, labels, options) end

---In training, zeroes elements with probability `rate`, scales the rest.
---@param x orrery.Tensor
---@param rate number
---@return orrery.Tensor
function orrery.dropout(x, rate) end

---Draws a 0-based class from each row of logits [R,C].
---@param logits orrery.Tensor
---@return orrery.Tensor
function orrery.categorical(logits) end

---Whether the function being traced is a training step.
---@return boolean
function orrery.training() end

---0, 1, ... n-1.
---@param n integer
---@param dtype? orrery.DType
---@return orrery.Tensor
function orrery.iota(n, dtype) end

---A tensor of one value.
---@param dims integer|integer[]
---@param value number
---@param dtype? orrery.DType
---@return orrery.Tensor
function orrery.full(dims, value, dtype) end

---New uniform numbers in [0,1) at every step: of these dims, or shaped like a tensor.
---@param dims_or_tensor any
---@return orrery.Tensor
function orrery.uniform(dims_or_tensor) end

---A concrete tensor from a number or nested lists; integers give i64, other numbers f32.
---@param values any
---@param dtype? orrery.DType
---@return orrery.HostTensor
function orrery.tensor(values, dtype) end

---@class orrery.parameter.Options
---@field init? any a number, a HostTensor, or nn.init's
---@field dtype? orrery.DType element type (default 'f32')
---@field name? string path; modules set their own (default '')

---A trained tensor.
---@param dims integer|integer[]
---@param options? orrery.parameter.Options
---@return orrery.State
function orrery.parameter(dims, options) end

---@class orrery.buffer.Options
---@field init? any a number, a HostTensor, or nn.init's
---@field dtype? orrery.DType element type (default 'f32')
---@field name? string path; modules set their own (default '')

---A tensor that lives from step to step, not trained.
---@param dims integer|integer[]
---@param options? orrery.buffer.Options
---@return orrery.State
function orrery.buffer(dims, options) end

---A number for use in traced functions that may change between steps: handle:set(x).
---@param name string
---@param value number
---@return orrery.Scalar
function orrery.input(name, value) end

---@class orrery.grad.Options
---@field grad_output? orrery.Tensor for a `y` with dims: what multiplies its derivatives

---The derivatives of the scalar `y` by each tensor of the list `values`: parameters, batch fields or what was computed on the way to `y`. They are tensors of this function and can be differentiated again. Of the samples' sum, `y:sum()`, each sample has its own; of a mean over the batch those by parameters are means over it as well.
---@param y orrery.Tensor
---@param values any[]
---@param options? orrery.grad.Options
---@return orrery.Tensor[]
function orrery.grad(y, values, options) end

---@class orrery.init.Options
---@field comm? string name of a comm plugin (default '')

---Chooses the comm backend; returns the world.
---@param options? orrery.init.Options
---@return orrery.World
function orrery.init(options) end

---Seeds data order, math.random, and the random numbers of parameters, runs and functions made after it: the n-th of them draws alike whenever the seed is the same.
---@param seed integer
function orrery.seed(seed) end

---Names the module that ops belong to until the result is closed: local r <close> = ...
---@param path string
---@return orrery.Region
function orrery.region(path) end

---Raises an error at the innermost line of the user's script.
---@param message string
function orrery.fail(message) end

---" (did you mean 'x'?)" for the nearest name, or "".
---@param word string
---@param known any[]
---@return string
function orrery.did_you_mean(word, known) end

---Order of names: 'blocks.2' before 'blocks.10'.
---@param a string
---@param b string
---@return boolean
function orrery.natural_less(a, b) end

---'Tensor', 'State', 'Module', ...: the class of a value, or its Lua type.
---@param value any
---@return string
function orrery.type(value) end

---Seconds of a clock that never goes back.
---@return number
function orrery.time() end

---Returns `x`. In a traced function every run of the program prints, from rank 0, one line about `x` of the whole batch: line, module path, dtype and shape; mean, standard deviation, least and greatest of the finite elements; how many are NaN or infinite; the first elements, of the first sample. Elsewhere it prints a HostTensor or a State now; states that ranks hold in parts are read together, so all ranks call it.
---@param x orrery.Tensor
---@param name? string
---@return orrery.Tensor
function orrery.print(x, name) end

---Returns `x`. Every run of the traced program records the statistics of `x` over the whole batch: result:get and observers have NAME.mean, .std, .min, .max (of the finite elements), .nan and .infinite (how many there are). NAME is the module path and `name`; "#2" is added to the second value of a name.
---@param x orrery.Tensor
---@param name string
---@return orrery.Tensor
function orrery.watch(x, name) end

---Declares key=value arguments of the script with their defaults and returns their values. A list as default names the allowed values; { default, help = "..." } says what `orrery run SCRIPT --help` prints of one. A script may call it several times.
---@param defaults table
---@return table
function orrery.args(defaults) end

---One value in the type of another tensor.
---@param tensor orrery.Tensor
---@param value number
---@return orrery.Tensor
function orrery.full_like(tensor, value) end

---Whether a path matches a pattern with '*'.
---@param pattern string
---@param path string
---@return boolean
function orrery.glob(pattern, path) end

---Prints what a function does and takes.
---@param name string
function orrery.help(name) end

---A .npy file as a HostTensor; a .safetensors file, the index of several (model.safetensors.index.json), what torch.save has written (.pt, .pth, .bin), or a directory of torch.distributed.checkpoint, as a table of them by name.
---@param path string
---@return any
function orrery.load(path) end

---A tensor of ones.
---@param dims integer|integer[]
---@param dtype? orrery.DType
---@return orrery.Tensor
function orrery.ones(dims, dtype) end

---Ones in the type of another tensor.
---@param tensor orrery.Tensor
---@return orrery.Tensor
function orrery.ones_like(tensor) end

---Checks an option table: `defaults` with the given values; unknown names are errors.
---@param what string
---@param given any
---@param defaults table
---@return table
function orrery.options(what, given, defaults) end

---@class orrery.record.Options
---@field step? integer left out: the steps of the run that was compiled, loaded or stepped last
---@field as? string 'number', 'text', 'image' or 'histogram', of all elements of a HostTensor; left out: by the value

---Records a value for those who watch the run: a number or a HostTensor of one element; a string as a text; a HostTensor [H,W], [C,H,W] or [N,C,H,W] of u8, or of reals from 0 to 1, as an image (1, 3 or 4 channels C; N become tiles, 8 in a row). {key = value, ...} records each as "name/key". Ranks may all call it, or rank 0 alone: it is written once.
---@param name string
---@param value any
---@param options? orrery.record.Options
function orrery.record(name, value, options) end

---@class orrery.save_onnx.Options
---@field inputs? any a list of names for the inputs, else x1, x2, ...
---@field outputs? any a list of names for the results, else y1, y2, ...

---Writes a function of tensors, or a module, to a file of ONNX, as it is outside of training; all ranks call it. `inputs` is a list of HostTensors, whose types and shapes the file takes: others are refused by who runs it.
---@param path string
---@param fn any
---@param inputs table
---@param options? orrery.save_onnx.Options
function orrery.save_onnx(path, fn, inputs, options) end

---Paths of Orrery's own sources and documents, texts to train on.
---@return string[]
function orrery.sources() end

---Joins tensors of one shape along a new dim.
---@param tensors any[]
---@param dim? integer
---@return orrery.Tensor
function orrery.stack(tensors, dim) end

---@class orrery.weight_map.Options
---@field prefix? string a beginning of names that those in a file may lack (default '')

---A map for load_weights and save_weights out of a list of rules { "h.*.attn.c_attn", "blocks.*.qkv", transpose = true }: a name in the file and the path in the module, each with what is below it. A * is the number of a layer, which counts from 0 in the file and from 1 in the module. Where a file has each expert's matrix by itself, the path ends in its number: { "experts.*.w1.weight", "experts.gate.*" }.
---@param rules table
---@param options? orrery.weight_map.Options
---@return function
function orrery.weight_map(rules, options) end

---A tensor of zeros.
---@param dims integer|integer[]
---@param dtype? orrery.DType
---@return orrery.Tensor
function orrery.zeros(dims, dtype) end

---Zeros in the type of another tensor.
---@param tensor orrery.Tensor
---@return orrery.Tensor
function orrery.zeros_like(tensor) end

---@class orrery.compile.Options
---@field params? orrery.Module|table the model whose parameters are trained; required
---@field optimizer? orrery.Optimizer required; each run keeps optimizer states of its own
---@field microbatches? integer pieces of the batch whose gradients are added in one order, which the bits depend on; 0: as many as ranks share the batch (default 0)
---@field clip? number the largest norm of all gradients together, but of groups with a `clip_norm`; 0: any (default 0)
---@field clip_value? number the largest element of a gradient, after that, and in groups without their own; 0: any (default 0)
---@field grad_norm? boolean results tell the norm of all gradients before clipping (default true)
---@field numerics? string "fast": matrix products in any order, on GPUs in TF32, on CPUs of bf16 by AMX and 3 x 3 convolutions by Winograd (default "exact")
---@field reduce? string "fast": sums over the batch in any order, one gradient for all microbatches (default "canonical")
---@field strategy? orrery.Strategy|orrery.Strategy[] how the work is spread (default {strategy.data{}})
---@field name? string of the run where it is watched, and of its directory in the run's; left out: "run-2" of the second (default "")

---A training step. The loss gets the batch as a table of tensors and returns the loss and, if wanted, {name = tensor} to fetch by result:get(name).
---@param loss orrery.Module|fun(batch:table):orrery.Tensor
---@param options orrery.compile.Options
---@return orrery.Run
function orrery.compile(loss, options) end

---A function of a batch that returns the loss and the gradients of this rank alone, in the order of orrery.parameters(model). The next call overwrites the gradients.
---@param loss orrery.Module|fun(batch:table):orrery.Tensor
---@param model orrery.Module|table
---@return fun(batch:table):number,orrery.State[]
function orrery.value_and_grad(loss, model) end

---The compiled form of a function of tensors. Called with HostTensors, fields of a batch, numbers or lists; returns HostTensors.
---@param fn fun(...):orrery.Tensor
---@return fun(...):orrery.HostTensor
function orrery.func(fn) end

---Sums of products as Einstein wrote them, for one tensor or several: "bij,bjk->bik" is a matrix product, "ij->ji" a transposition. Each dim has a letter; one that the result does not have is summed. Several tensors are multiplied from left to right, each time as one matrix product.
---@param equation string
---@param ... orrery.Tensor
---@return orrery.Tensor
function orrery.einsum(equation, ...) end

---@class orrery.gradient.Options
---@field forward? fun(x,...):orrery.Tensor gives y; required
---@field backward? fun(dy,y,x,...) gives one gradient for each x (nil: none); required

---A function of tensors with a gradient of its own. Neither function may use a tensor that was not handed to it.
---@param options orrery.gradient.Options
---@return fun(...):orrery.Tensor
function orrery.gradient(options) end

---The trained tensors of a module or of a table of modules, in natural order of their paths. A table's keys become the first part of the paths.
---@param model orrery.Module|table
---@return orrery.State[]
function orrery.parameters(model) end

---Prints a line from rank 0, formatted as by string.format.
---@param format string
---@param ... any
function orrery.log(format, ...) end

---A hash of the bytes of all tensors below, parameters and buffers, in natural order of their paths.
---@param model orrery.Module|table
---@return string
function orrery.digest(model) end

---New numbers of N(0, 1) at every step: of these dims, or shaped like a tensor and one for each of its elements.
---@param dims_or_tensor integer|integer[]|orrery.Tensor
---@return orrery.Tensor
function orrery.normal(dims_or_tensor) end

---@class orrery.op.Options
---@field name? string of letters, digits and _; required
---@field inputs? integer tensors that it takes (default 1)
---@field results? integer tensors that it makes (default 1)
---@field options? table {name = default}: numbers, texts and booleans (default {})
---@field shape? fun(o,...):integer[],... each result's shape from those of the inputs; required
---@field forward? fun(o,x,...):orrery.Tensor,... required; uses no tensor that was not handed to it
---@field backward? fun(o,dy,y,x,...) gives one gradient for each x (nil: none)
---@field examples? table {{shape, ...}, ...}: lists of the inputs' shapes, for orrery.check_op (default {})

---An op of the script's own, written in others. It is called by what comes back, and as orrery.ops.NAME: with its inputs and then, if it has options, a table of them. Where its work is done, what it costs and, without `backward`, its gradient follow from what `forward` is made of. With several results `backward` gets them in a list, and their cotangents in another one, in which those that are 0 are nil. orrery.check_op tries it.
---@param definition orrery.op.Options
---@return fun(...):orrery.Tensor,...
function orrery.op(definition) end

---Tries an op of orrery.op, or of a plugin, on its examples, in f64, and is an error where it does not hold what it says: its shape; its derivative and that one's own against central differences; along each dim that a plugin says may be cut, that of the parts of its inputs it makes the parts of its results, or summands of them; that two and three ranks with parts of its inputs make its results, where a plugin writes what they do; that a kernel makes of them what the known ops of the plugin do.
---@param name string as in orrery.ops
---@param what? 'shape'|'gradient'|'second'|'factors'|'parts'|'known'|'training' one of these alone; "training" prints the bits of three steps
function orrery.check_op(name, what) end

---Runs a recurrence over the time of x [batch, time, ...]: step(state, x_t, t) returns the next state and a tensor [batch, ...]. Gives these joined along time, [batch, time, ...], and the last state. The recurrence is written out in the program, so a step may be any Lua; carry the last state into another batch as one of its fields to go on.
---@param step fun(state,x,t):any,orrery.Tensor
---@param state any what the first step is handed: a tensor, a table of tensors, nil
---@param x orrery.Tensor
---@return orrery.Tensor, any
function orrery.scan(step, state, x) end

---@class orrery.Tensor
---@field shape integer[]
---@field dtype orrery.DType
---@field [integer|table] orrery.Tensor x[2], x[{1, {2, 5}}]: of each dim one place, or a range with both ends
---@operator add(orrery.Tensor|number): orrery.Tensor
---@operator sub(orrery.Tensor|number): orrery.Tensor
---@operator mul(orrery.Tensor|number): orrery.Tensor
---@operator div(orrery.Tensor|number): orrery.Tensor
---@operator mod(orrery.Tensor|number): orrery.Tensor
---@operator pow(orrery.Tensor|number): orrery.Tensor
---@operator unm: orrery.Tensor
local Tensor = {}

---e to the power of each element.
---@return orrery.Tensor
function Tensor:exp() end

---Natural logarithm.
---@return orrery.Tensor
function Tensor:log() end

---Hyperbolic tangent.
---@return orrery.Tensor
function Tensor:tanh() end

---1 / (1 + exp(-x)).
---@return orrery.Tensor
function Tensor:sigmoid() end

---max(x, 0).
---@return orrery.Tensor
function Tensor:relu() end

---GELU in its tanh form.
---@return orrery.Tensor
function Tensor:gelu() end

---Square root.
---@return orrery.Tensor
function Tensor:sqrt() end

---1 / sqrt(x).
---@return orrery.Tensor
function Tensor:rsqrt() end

---1 / x.
---@return orrery.Tensor
function Tensor:recip() end

---Absolute value.
---@return orrery.Tensor
function Tensor:abs() end

----1, 0 or 1; NaN of NaN.
---@return orrery.Tensor
function Tensor:sign() end

---The error function.
---@return orrery.Tensor
function Tensor:erf() end

---Sine.
---@return orrery.Tensor
function Tensor:sin() end

---Cosine.
---@return orrery.Tensor
function Tensor:cos() end

---Largest integer not above.
---@return orrery.Tensor
function Tensor:floor() end

---Smallest integer not below.
---@return orrery.Tensor
function Tensor:ceil() end

---Nearest integer, ties to even.
---@return orrery.Tensor
function Tensor:round() end

---true where neither infinite nor NaN.
---@return orrery.Tensor
function Tensor:isfinite() end

---Negation of booleans.
---@return orrery.Tensor
function Tensor:logical_not() end

---Power, with broadcasting; of integers in f32.
---@param other orrery.Tensor|number
---@return orrery.Tensor
function Tensor:pow(other) end

---The larger of two, elementwise; NaN if one is. Of equal ones the first gets the gradient.
---@param other orrery.Tensor|number
---@return orrery.Tensor
function Tensor:maximum(other) end

---The smaller of two, elementwise, with a gradient as that of maximum.
---@param other orrery.Tensor|number
---@return orrery.Tensor
function Tensor:minimum(other) end

---x > other, as booleans.
---@param other orrery.Tensor|number
---@return orrery.Tensor
function Tensor:gt(other) end

---x < other, as booleans.
---@param other orrery.Tensor|number
---@return orrery.Tensor
function Tensor:lt(other) end

---x >= other, as booleans.
---@param other orrery.Tensor|number
---@return orrery.Tensor
function Tensor:ge(other) end

---x <= other, as booleans.
---@param other orrery.Tensor|number
---@return orrery.Tensor
function Tensor:le(other) end

---x == other, as booleans.
---@param other orrery.Tensor|number
---@return orrery.Tensor
function Tensor:eq(other) end

---x ~= other, as booleans.
---@param other orrery.Tensor|number
---@return orrery.Tensor
function Tensor:ne(other) end

---Both true.
---@param other orrery.Tensor|number
---@return orrery.Tensor
function Tensor:logical_and(other) end

---One or both true.
---@param other orrery.Tensor|number
---@return orrery.Tensor
function Tensor:logical_or(other) end

---Elementwise choice by this boolean tensor.
---@param yes orrery.Tensor|number
---@param no orrery.Tensor|number
---@return orrery.Tensor
function Tensor:select(yes, no) end

---The same numbers in another dtype. Reals lose their fraction in integers; what i32 or i64 does not hold, and NaN, becomes the smallest one.
---@param dtype orrery.DType
---@return orrery.Tensor
function Tensor:cast(dtype) end

---@class orrery.Tensor.matmul.Options
---@field transpose_a? boolean use this tensor transposed (default false)
---@field transpose_b? boolean use the other tensor transposed (default false)

---Matrix product over the last two dims; earlier dims are batches.
---@param other orrery.Tensor
---@param options? orrery.Tensor.matmul.Options
---@return orrery.Tensor
function Tensor:matmul(other, options) end

---@class orrery.Tensor.gather_matmul.Options
---@field transpose_b? boolean the matrices are [number, outputs, d] (default false)

---Each row of [..., d] times the one of the matrices [number, d, outputs] that its 0-based index [...] names; 0 where that is -1. A row costs one product, however many matrices there are.
---@param matrices orrery.Tensor
---@param index orrery.Tensor
---@param options? orrery.Tensor.gather_matmul.Options
---@return orrery.Tensor
function Tensor:gather_matmul(matrices, index, options) end

---Other dims, same elements; one may be -1.
---@param ... any
---@return orrery.Tensor
function Tensor:reshape(...) end

---Repeats dims of size 1 up to these dims.
---@param ... any
---@return orrery.Tensor
function Tensor:broadcast(...) end

---Swaps two dims, by default the last two.
---@param first? integer
---@param second? integer
---@return orrery.Tensor
function Tensor:transpose(first, second) end

---Reorders the dims.
---@param ... any
---@return orrery.Tensor
function Tensor:permute(...) end

---Elements first..last of a dim, both included, or every step-th of them; of a negative step backwards, such as from -1 to 1.
---@param dim integer
---@param first integer
---@param last? integer
---@param step? integer
---@return orrery.Tensor
function Tensor:slice(dim, first, last, step) end

---Cuts a dim into sizes, or into n equal parts; returns all parts.
---@param dim integer
---@param sizes integer|integer[]
---@return orrery.Tensor
function Tensor:split(dim, sizes) end

---@class orrery.Tensor.pad.Options
---@field before? integer so many in front of them (default 0)
---@field value? number instead of zeros (default 0)

---Zeros behind the elements of a dim, up to `size` of them.
---@param dim integer
---@param size integer
---@param options? orrery.Tensor.pad.Options
---@return orrery.Tensor
function Tensor:pad(dim, size, options) end

---@class orrery.Tensor.windows.Options
---@field stride? integer|integer[] from a window to the next, for all dims or for each (default 1)
---@field dilation? integer|integer[] from an element of a window to the next (default 1)

---[..., L..., C] as [..., O..., K..., C]: the windows of `size` K over as many dims before the last. Nothing is copied.
---@param size integer|integer[]
---@param options? orrery.Tensor.windows.Options
---@return orrery.Tensor
function Tensor:windows(size, options) end

---@class orrery.Tensor.fold.Options
---@field stride? integer|integer[] from a window to the next, for all dims or for each (default 1)
---@field dilation? integer|integer[] from an element of a window to the next (default 1)

---[..., O..., K..., C] as [..., L..., C]: windows in their places again; what they share is added up.
---@param length integer|integer[]
---@param options? orrery.Tensor.fold.Options
---@return orrery.Tensor
function Tensor:fold(length, options) end

---Rows of this [V,C] table by 0-based ids of any shape.
---@param ids orrery.Tensor
---@return orrery.Tensor
function Tensor:gather(ids) end

---The elements at 0-based positions of the tensor, seen as one row.
---@param index orrery.Tensor
---@return orrery.Tensor
function Tensor:take(index) end

---The tensor, seen as one row, with the elements at these positions replaced by a number or by others; several for one position add up.
---@param index orrery.Tensor
---@param value orrery.Tensor|number
---@return orrery.Tensor
function Tensor:put(index, value) end

---The tensor with rows added at 0-based positions of its first dim; what shares a position adds up.
---@param index orrery.Tensor
---@param rows orrery.Tensor
---@return orrery.Tensor
function Tensor:scatter_add(index, rows) end

---`size` elements of a dim from the 0-based run-time index `at`.
---@param dim integer
---@param at orrery.Tensor|number
---@param size integer
---@return orrery.Tensor
function Tensor:slice_at(dim, at, size) end

---This tensor with `part` written at the 0-based index `at`.
---@param part orrery.Tensor
---@param dim integer
---@param at orrery.Tensor|number
---@return orrery.Tensor
function Tensor:update_slice(part, dim, at) end

---The same values; no gradient flows back.
---@return orrery.Tensor
function Tensor:stop_gradient() end

---@class orrery.Tensor.sum.Options
---@field keep? boolean keep the reduced dims with size 1 (default false)

---Sum over dims (all, if left out); of integers in i64.
---@param dims? integer|integer[]
---@param options? orrery.Tensor.sum.Options
---@return orrery.Tensor
function Tensor:sum(dims, options) end

---@class orrery.Tensor.sumsq.Options
---@field keep? boolean keep the reduced dims with size 1 (default false)

---Sum of squares over dims.
---@param dims? integer|integer[]
---@param options? orrery.Tensor.sumsq.Options
---@return orrery.Tensor
function Tensor:sumsq(dims, options) end

---@class orrery.Tensor.mean.Options
---@field keep? boolean keep the reduced dims with size 1 (default false)

---Mean over dims; over the batch, of the samples that count.
---@param dims? integer|integer[]
---@param options? orrery.Tensor.mean.Options
---@return orrery.Tensor
function Tensor:mean(dims, options) end

---@class orrery.Tensor.max.Options
---@field keep? boolean keep the reduced dims with size 1 (default false)

---Largest element over dims. Of several equal ones each gets an equal part of the gradient.
---@param dims? integer|integer[]
---@param options? orrery.Tensor.max.Options
---@return orrery.Tensor
function Tensor:max(dims, options) end

---@class orrery.Tensor.min.Options
---@field keep? boolean keep the reduced dims with size 1 (default false)

---Smallest element over dims, with a gradient as that of max.
---@param dims? integer|integer[]
---@param options? orrery.Tensor.min.Options
---@return orrery.Tensor
function Tensor:min(dims, options) end

---For each sample, dim 1, the mean over the samples of its microbatch, and how many these are.
---@return orrery.Tensor, orrery.Tensor
function Tensor:microbatch_mean() end

---@class orrery.Tensor.argmax.Options
---@field keep? boolean keep the reduced dims with size 1 (default false)

---0-based position of the largest of a dim.
---@param dim? integer
---@param options? orrery.Tensor.argmax.Options
---@return orrery.Tensor
function Tensor:argmax(dim, options) end

---The k largest of the last dim, descending, and their 0-based positions.
---@param k integer
---@return orrery.Tensor, orrery.Tensor
function Tensor:topk(k) end

---The sum, mean, min or max over the ranks of a mesh axis, on all of them. The tensor varies: each rank has one of its own.
---@param axis string
---@param op? string
---@return orrery.Tensor
function Tensor:all_reduce(axis, op) end

---@class orrery.Tensor.all_gather.Options
---@field dim? integer along which they are joined; scalars make a list (default 1)

---The ranks' tensors one after another along a dim, on all ranks of the axis. Over "batch": the rows of all samples, on whatever ranks and in whatever microbatches they are, as one tensor that every sample may read, with its gradient.
---@param axis string
---@param options? orrery.Tensor.all_gather.Options
---@return orrery.Tensor
function Tensor:all_gather(axis, options) end

---@class orrery.Tensor.reduce_scatter.Options
---@field dim? integer that is dealt to the ranks (default 1)

---Of the sum over the ranks of an axis this rank's share of a dim.
---@param axis string
---@param options? orrery.Tensor.reduce_scatter.Options
---@return orrery.Tensor
function Tensor:reduce_scatter(axis, options) end

---@class orrery.Tensor.all_to_all.Options
---@field split? integer the dim that is dealt (default 1)
---@field concat? integer the dim that is joined (default 1)

---Deals `split` to the ranks of an axis and joins what comes from them along `concat`.
---@param axis string
---@param options? orrery.Tensor.all_to_all.Options
---@return orrery.Tensor
function Tensor:all_to_all(axis, options) end

---@class orrery.Tensor.ppermute.Options
---@field hop? integer to the rank so many further, round in a ring (default 1)
---@field to? integer|integer[] instead: the coordinate, from 0, that each sends to

---What another rank of the axis has: each sends its tensor on.
---@param axis string
---@param options? orrery.Tensor.ppermute.Options
---@return orrery.Tensor
function Tensor:ppermute(axis, options) end

---The tensor of one rank of the axis, on all of them.
---@param axis string
---@param root? integer
---@return orrery.Tensor
function Tensor:pbroadcast(axis, root) end

---The same numbers as a tensor of each rank's own on the axis.
---@param axis string
---@return orrery.Tensor
function Tensor:vary(axis) end

---Of a tensor [batch, ...] that is one for all samples, such as a table that the script holds, each sample's own row. Needed only where the rows are told apart by more than their place; in functions without a batch it is the tensor.
---@return orrery.Tensor
function Tensor:for_each_sample() end

---exp(x) over its sum along the last dim.
---@return orrery.Tensor
function Tensor:softmax() end

---@class orrery.Tensor.all.Options
---@field keep? boolean keep the reduced dims with size 1 (default false)

---Whether all elements over dims (all, if left out) are true, or not 0.
---@param dims? integer|integer[]
---@param options? orrery.Tensor.all.Options
---@return orrery.Tensor
function Tensor:all(dims, options) end

---@class orrery.Tensor.any.Options
---@field keep? boolean keep the reduced dims with size 1 (default false)

---Whether one of the elements over dims (all, if left out) is true, or not 0.
---@param dims? integer|integer[]
---@param options? orrery.Tensor.any.Options
---@return orrery.Tensor
function Tensor:any(dims, options) end

---@class orrery.Tensor.argmin.Options
---@field keep? boolean keep the reduced dims with size 1 (default false)

---0-based position of the smallest of a dim.
---@param dim? integer
---@param options? orrery.Tensor.argmin.Options
---@return orrery.Tensor
function Tensor:argmin(dim, options) end

---No less than `low` and no more than `high`. At these two the gradient passes.
---@param low number
---@param high number
---@return orrery.Tensor
function Tensor:clamp(low, high) end

---Sums of the elements of a dim up to and with each; of integers in i64.
---@param dim integer
---@return orrery.Tensor
function Tensor:cumsum(dim) end

---As broadcast: repeats dims of size 1 up to these dims, of which -1 stays as it is.
---@param ... any
---@return orrery.Tensor
function Tensor:expand(...) end

---The dims from `first` to `last` as one.
---@param first? integer
---@param last? integer
---@return orrery.Tensor
function Tensor:flatten(first, last) end

---The elements of these dims in reverse.
---@param dims integer|integer[]
---@return orrery.Tensor
function Tensor:flip(dims) end

---@class orrery.Tensor.logsumexp.Options
---@field keep? boolean keep the reduced dims with size 1 (default false)

---Logarithm of the sum of exp(x) over dims.
---@param dims? integer|integer[]
---@param options? orrery.Tensor.logsumexp.Options
---@return orrery.Tensor
function Tensor:logsumexp(dims, options) end

---`value` where the boolean mask is true, else the element.
---@param mask orrery.Tensor
---@param value number
---@return orrery.Tensor
function Tensor:masked_fill(mask, value) end

---0-based ids as rows of n, 1 at the id and else 0. An id outside of 0 to n - 1 is an error.
---@param n integer
---@param dtype? orrery.DType
---@return orrery.Tensor
function Tensor:one_hot(n, dtype) end

---The elements of a dim so many places further; those at its end go round to the front.
---@param shift integer
---@param dim integer
---@return orrery.Tensor
function Tensor:roll(shift, dim) end

---x * sigmoid(x).
---@return orrery.Tensor
function Tensor:silu() end

---@class orrery.Tensor.sort.Options
---@field descending? boolean the largest first (default false)

---The elements of a dim in ascending order and their 0-based positions. Equal elements keep their order; NaN comes first. The gradient compares the positions of each row with each other: n times n.
---@param dim? integer
---@param options? orrery.Tensor.sort.Options
---@return orrery.Tensor, orrery.Tensor
function Tensor:sort(dim, options) end

---Without these dims, where their size is 1.
---@param dims integer|integer[]
---@return orrery.Tensor
function Tensor:squeeze(dims) end

---@class orrery.Tensor.std.Options
---@field keep? boolean keep the reduced dims with size 1 (default false)
---@field correction? integer of n elements n less this many are divided by (default 1)

---Standard deviation over dims: the square root of var.
---@param dims? integer|integer[]
---@param options? orrery.Tensor.std.Options
---@return orrery.Tensor
function Tensor:std(dims, options) end

---The tensor so often one after another along each dim, as torch.repeat does.
---@param ... any
---@return orrery.Tensor
function Tensor:tile(...) end

---The lower triangle of the last two dims, zeros above: up to the main diagonal, or one so many places to the right of it.
---@param diagonal? integer
---@return orrery.Tensor
function Tensor:tril(diagonal) end

---The upper triangle of the last two dims, zeros below: from the main diagonal on, or one so many places to the right of it.
---@param diagonal? integer
---@return orrery.Tensor
function Tensor:triu(diagonal) end

---The elements of a dim as tensors without it; returns all of them.
---@param dim? integer
---@return orrery.Tensor
function Tensor:unbind(dim) end

---A new dim of size 1 at this place; -1 puts it behind the last.
---@param dim integer
---@return orrery.Tensor
function Tensor:unsqueeze(dim) end

---@class orrery.Tensor.var.Options
---@field keep? boolean keep the reduced dims with size 1 (default false)
---@field correction? integer of n elements n less this many are divided by (default 1)

---Variance over dims.
---@param dims? integer|integer[]
---@param options? orrery.Tensor.var.Options
---@return orrery.Tensor
function Tensor:var(dims, options) end

---As reshape: other dims, same elements; one may be -1.
---@param ... any
---@return orrery.Tensor
function Tensor:view(...) end

---@class orrery.engine
orrery.engine = {}

---Sets what orrery.training() says from here on, and returns what it said.
---@param training boolean
---@return boolean
function orrery.engine.trace_as(training) end

---The elements as they lie in memory.
---@param x orrery.HostTensor
---@return string
function orrery.engine.bytes(x) end

---Of each dim `count` elements, the 0-based `first`, first + step, ..., which exist, as a tensor of this shape.
---@param x orrery.HostTensor
---@param first table
---@param count table
---@param step table
---@param shape table
---@return orrery.HostTensor
function orrery.engine.part(x, first, count, step, shape) end

---@class orrery.engine.buffer.Options
---@field init? any a number, a HostTensor, or nn.init's
---@field dtype? orrery.DType element type (default 'f32')
---@field name? string path; modules set their own (default '')

---A buffer of the library's own, of one program.
---@param dims integer|integer[]
---@param options? orrery.engine.buffer.Options
---@return orrery.State
function orrery.engine.buffer(dims, options) end

---Says that `count` is how often `of` was updated, which a checkpoint that has only `of` does not tell: its step it is then.
---@param count orrery.State
---@param of orrery.State
function orrery.engine.counts(count, of) end

---What orrery.compile makes, from a complete specification.
---@param spec table
---@return orrery.Run
function orrery.engine.run(spec) end

---Evaluates the loss of one batch.
---@param run orrery.Run
---@param batch table
---@param name string
---@return orrery.StepResult
function orrery.engine.evaluate(run, batch, name) end

---Evaluates the batches that next() returns as if they were one.
---@param run orrery.Run
---@param next function
---@param name string
---@return orrery.StepResult
function orrery.engine.evaluate_all(run, next, name) end

---Whether a number of a run may have this name.
---@param name string
function orrery.engine.check_metric_name(name) end

---Writes a checkpoint, or begins to.
---@param run orrery.Run
---@param directory string
---@param extra string
---@param wait boolean
---@param format string
function orrery.engine.save(run, directory, extra, wait, format) end

---Calls it with the first batch before its use; the script ends if it returns true.
---@param run orrery.Run
---@param call function
function orrery.engine.before_first(run, call) end

---What the planner answers about a step (core/plan/planner.h), of question.strategies if they are given.
---@param run orrery.Run
---@param batch table
---@param question table
---@return any
function orrery.engine.plan(run, batch, question) end

---Those of the command line.
---@return table
function orrery.engine.plan_options() end

---The run's stack and microbatches from now on.
---@param run orrery.Run
---@param layout table
function orrery.engine.use_layout(run, layout) end

---Calls after(run, result) after each step; the run has its checkpoints in the directory, which is made and locked, from now on.
---@param run orrery.Run
---@param directory string
---@param after function
function orrery.engine.begin_series(run, directory, after) end

---Saves in the directory of begin_series, while steps go on; when that is complete, removes others.
---@param run orrery.Run
---@param extra string
---@param remove table
function orrery.engine.save_in_series(run, extra, remove) end

---Waits for the save that has begun last.
---@param run orrery.Run
function orrery.engine.finish_save(run) end

---Saves where the script does, unless it has already; the last one in the run's directory if it does not.
---@param run orrery.Run
---@param last boolean
function orrery.engine.save_to_stop(run, last) end

---Ends the script.
---@param run orrery.Run
---@param signal integer
function orrery.engine.stop(run, signal) end

---Those in a directory of several, by step: path, complete, extra.
---@param directory string
---@return table[]
function orrery.engine.checkpoints(directory) end

---Traces a function of tensors, once per input shapes. `stream`: of its random numbers; '': the next of the script's.
---@param body function
---@param stream? string
---@return orrery.Program
function orrery.engine.func(body, stream) end

---What a function is traced into for HostTensors of these types: values by their numbers, and ops in their order.
---@param body function
---@param inputs table
---@return table
function orrery.engine.traced(body, inputs) end

---A hash of the values that functions of the script close over.
---@param functions table
---@return integer
function orrery.engine.captured(functions) end

---Whether a function is being traced.
---@return boolean
function orrery.engine.tracing() end

---In a trace: the run-time number of this name.
---@param name string
---@param dtype? orrery.DType
---@return orrery.Tensor
function orrery.engine.scalar(name, dtype) end

---`y`, whose cotangent goes through `backward(dy, y, x...)` to the tensors `xs`.
---@param y orrery.Tensor
---@param xs table
---@param backward function
---@return orrery.Tensor
function orrery.engine.with_gradient(y, xs, backward) end

---The ops of all plugins: {name =, plugin =, inputs =, results =, both = whether kernels compute it and known ops can, options = {name = default}}.
---@return table[]
function orrery.engine.plugin_ops() end

---For errors: '; op ... could not be loaded: why', or ''.
---@return string
function orrery.engine.op_plugins_not_loaded() end

---What op `number` of that list makes of the tensors `xs`, given all its options; `known`: in known ops, if it can be.
---@param number integer
---@param given table
---@param xs table
---@param known boolean
---@return Tensor...
function orrery.engine.plugin_op(number, given, xs, known) end

---The inputs that op `number` is tried on: lists of {shape =, dtype =}.
---@param number integer
---@return table[]
function orrery.engine.plugin_op_examples(number) end

---For each input of op `number`, of types {shape =, dtype =}, the factor of each dim, and the same for each result; -1: a dim that is not cut. Nothing, if no kernel computes the op.
---@param number integer
---@param types table
---@return table?, table?
function orrery.engine.plugin_op_factors(number, types) end

---The same for dims along which the plugin writes the op on parts.
---@param number integer
---@param types table
---@return table?, table?
function orrery.engine.plugin_op_part_factors(number, types) end

---What `ranks` ranks make together of parts of `xs` along a dim of that factor: each result, or, where it has no such dim, those of all ranks in a dim in front.
---@param number integer
---@param given table
---@param xs table
---@param factor integer
---@param ranks integer
---@return Tensor...
function orrery.engine.plugin_op_on_parts(number, given, xs, factor, ranks) end

---The ranks of this job.
---@return orrery.World
function orrery.engine.world() end

---Begins a collective on a list of tensors.
---@param world orrery.World
---@param kind string
---@param tensors table
---@param options table
---@return orrery.Handle
function orrery.engine.post(world, kind, tensors, options) end

---Waits for it: the list of tensors, and of an alltoall the rows from each rank.
---@param handle orrery.Handle
---@return table, integer[]
function orrery.engine.await(handle) end

---All ranks' bytes, one after another.
---@param world orrery.World
---@param bytes string
---@param name string
---@return string
function orrery.engine.gather_bytes(world, bytes, name) end

---All tensors of a file of weights by name.
---@param path string
---@return table
function orrery.engine.load_weights(path) end

---A file of weights, whose tensors are read one by one.
---@param path string
---@return orrery.Weights
function orrery.engine.weights(path) end

---Writes safetensors files, each {file, states, paths}, and an index if there are several, in place of what was saved to the path before.
---@param path string
---@param files table
function orrery.engine.save_weights(path, files) end

---data.open; a table among the options has become fields 'outer.inner'.
---@param format string
---@param paths any
---@param options table
---@param dtypes table
---@return orrery.Dataset
function orrery.engine.open_data(format, paths, options, dtypes) end

---data.tokenizer, with options likewise.
---@param plugin string
---@param options table
---@param text string
---@param name string
---@return orrery.Tokenizer
function orrery.engine.make_tokenizer(plugin, options, text, name) end

---A text, which errors call so, as fields x and y.
---@param text string
---@param tokenizer orrery.Tokenizer
---@param length integer
---@param name string
---@return orrery.Dataset
function orrery.engine.windows(text, tokenizer, length, name) end

---A field of samples that a HostTensor or lists have.
---@param name string
---@param tensor any
---@return orrery.Dataset
function orrery.engine.array(name, tensor) end

---The fields of several datasets.
---@param parts table
---@return orrery.Dataset
function orrery.engine.beside(parts) end

---@class orrery.engine.read_source.Options
---@field string? boolean source is the text itself (default false)

---The text of a source, and what messages call it.
---@param source any
---@param options orrery.engine.read_source.Options
---@return string, string
function orrery.engine.read_source(source, options) end

---How many samples can be read, windows of text at every token.
---@param data orrery.Dataset
---@return integer
function orrery.engine.samples(data) end

---Parts one after another, each so many samples long; errors begin with the call.
---@param call string
---@param parts table
---@param lengths table
---@return orrery.Dataset
function orrery.engine.mix(call, parts, lengths) end

---The first sample of a dataset of one field.
---@param data orrery.Dataset
---@return orrery.HostTensor
function orrery.engine.first(data) end

---The sample at a position, from 1: HostTensors by the names of fields.
---@param data orrery.Dataset
---@param position integer
---@return table
function orrery.engine.sample(data, position) end

---As Dataset:batches, each of the first `limit` samples once and in order.
---@param data orrery.Dataset
---@param size integer
---@param limit integer
---@return fun(): integer, table, integer
function orrery.engine.pass(data, size, limit) end

---A random number from 0, the same for the same seed and ordinal.
---@param seed integer
---@param ordinal integer
---@param below integer
---@return integer
function orrery.engine.draw(seed, ordinal, below) end

---Its fields: name, dims, dtype and type, such as "f32[3,32,32]".
---@param data orrery.Dataset
---@return table[]
function orrery.engine.fields(data) end

---Dataset:augment, with checked options.
---@param data orrery.Dataset
---@param options table
---@return orrery.Dataset
function orrery.engine.augment(data, options) end

---What errors call a value: 'a Tensor', 3, "'text'".
---@param value any
---@return string
function orrery.engine.describe(value) end

---Names of the strategy plugins.
---@return string[]
function orrery.engine.strategies() end

---The options of a strategy plugin, for the manual.
---@param name string
---@return table[]
function orrery.engine.strategy_options(name) end

---The user's file:line.
---@return string
function orrery.engine.here() end

---The function, called through C: a script's `return f(x)` is no tail call then, which would lose its line.
---@param f function
---@return function
function orrery.engine.keep_frame(f) end

---Hash of the bytes of states.
---@param states table
---@return string
function orrery.engine.digest(states) end

---Tells observers a fact of the run.
---@param name string
---@param text string
function orrery.engine.fact(name, text) end

---The process that writes to the directory of a run now, in words; '': none does.
---@param directory string
---@return string
function orrery.engine.writer_of_run(directory) end

---One line on stdout, from rank 0.
---@param line string
function orrery.engine.print(line) end

---Declares a function of the library, in the words of core/lua/api.h; its arguments are checked and its defaults filled in.
---@param declaration string
---@param body function
function orrery.engine.define(declaration, body) end

---What is declared so, here and in C++, for the manual.
---@return table[]
function orrery.engine.rows() end

---The Lua library's directory.
---@return string
function orrery.engine.library() end

---Whether there is such a file.
---@param path string
---@return boolean
function orrery.engine.is_file(path) end

---The file as a chunk of this name.
---@param path string
---@param name string
---@return function
function orrery.engine.load_file(path, name) end

---The script's path; '': none runs.
---@return string
function orrery.engine.script() end

---The words behind the script.
---@return string[]
function orrery.engine.arguments() end

---An error of the command line.
---@param message string
function orrery.engine.fail_usage(message) end

---Whether the script runs for its plan.
---@return boolean
function orrery.engine.plan_only() end

---dtype, shape and statistics of a HostTensor or a State.
---@param x any
---@return string
function orrery.engine.told(x) end

---The results of the module at this path, which steps may be asked for by Run:probe.
---@param path string
---@param ... any
---@return any ...
function orrery.engine.results(path, ...) end

---Records a value of a run, or of the script if that is nil, at a step (-1: the one that it is at) as 'number', 'text', 'image' or 'histogram' ('': by the value).
---@param run any
---@param name string
---@param value any
---@param step integer
---@param as string
function orrery.engine.record(run, name, value, step, as) end

---A line of standard input, at a terminal with an editor in which Tab proposes the list `complete(text before the cursor)`; nil at its end, false if Ctrl-C was pressed.
---@param prompt string
---@param complete function
---@return string | boolean | nil
function orrery.engine.read_line(prompt, complete) end

---Calls `f`, which Ctrl-C interrupts: true and its results, or false and the error.
---@param f function
---@return boolean, any ...
function orrery.engine.attempt(f) end

---Adds a line to those of all sessions, in this file; without one reads them.
---@param path string
---@param line? string
function orrery.engine.history(path, line) end

---Whether somebody types the input.
---@return boolean
function orrery.engine.at_terminal() end

---Facts of this machine and of the program, and the shares of its cores that so many ranks would get.
---@param ranks integer
---@return table
function orrery.engine.machine(ranks) end

---The plugin files by kind: kind, name, version, summary, path and reason: why it is refused, or "".
---@return table[]
function orrery.engine.plugins() end

---Why a plugin, by its place in that list, cannot be used here, after loading it; "" if it can.
---@param number integer
---@return string
function orrery.engine.refusal(number) end

---What a plugin, by its place in that list, has found out about this machine: name and text.
---@param number integer
---@return table[]
function orrery.engine.facts(number) end

---The directory of the templates of plugins.
---@return string
function orrery.engine.templates() end

---Makes a directory and those above it; "", or why it cannot.
---@param path string
---@return string
function orrery.engine.make_directory(path) end

---@class orrery.HostTensor: orrery.Tensor
---@field shape integer[]
---@field dtype orrery.DType
local HostTensor = {}

---The elements as nested lists.
---@return table
function HostTensor:tolist() end

---The only element.
---@return number
function HostTensor:item() end

---Writes a .npy file.
---@param path string
function HostTensor:save(path) end

---The text that u8[n] holds, up to the zeros at its end.
---@return string
function HostTensor:text() end

---@class orrery.State: orrery.Tensor
---@field shape integer[]
---@field dtype orrery.DType
---@field name string
---@field frozen boolean
---@field trained boolean
local State = {}

---A copy of the current value.
---@return orrery.HostTensor
function State:read() end

---Replaces the value.
---@param value any
function State:write(value) end

---In a trace: the state holds `value` after the step.
---@param value orrery.Tensor
function State:update(value) end

---In a trace: what the state will hold after the step, as far as an update has said so; else its value.
---@return orrery.Tensor
function State:updated() end

---Sets the path.
---@param name string
function State:rename(name) end

---Excludes the parameter from training (or includes it again).
---@param frozen? boolean
function State:freeze(frozen) end

---A key that is equal for equal states.
---@return any
function State:identity() end

---@class orrery.Scalar: orrery.Tensor
---@field value number
local Scalar = {}

---The value from the next step on.
---@param value number
function Scalar:set(value) end

---@class orrery.Run
---@field steps integer
local Run = {}

---Trains on one batch, {field = tensor}.
---@param batch table
---@return orrery.StepResult
function Run:step(batch) end

---The next step's result also has these values of the whole batch, by result:get(name): the output of a module, by its path as print(model) shows it or its kind if it is the model itself ("NAME#2" of its second call or result); what orrery.watch or orrery.print names; and with "grad " before the name the loss's derivative by such a value or by a parameter that is trained. All ranks call it.
---@param names any[]
function Run:probe(names) end

---What a step on this batch will do; nothing is run.
---@param batch table
---@return string
function Run:plan(batch) end

---What this rank has used: steps trained, arena_bytes allocated, bytes_sent and, between memory tiers, bytes_copied in those steps; and planned_arena_bytes, predicted_bytes_sent, planned_bytes_copied as the plan and the strategies said before; checkpoint_seconds that the script has waited for checkpoints, and checkpoint_bytes of the memory in which the last one was copied.
---@return table
function Run:counters() end

---Waits until the last checkpoint is complete, and raises its error.
function Run:finish_save() end

---Continues from a checkpoint, in a directory or at an address; the steps done and `extra`.
---@param directory string
---@return integer, string
function Run:load(directory) end

---@class orrery.Run.checkpoints.Options
---@field dir string gets a directory step-N for each
---@field every integer steps between two
---@field keep? integer how many of the newest stay; 0: all (default 2)
---@field best? string a result of the step, such as 'loss': the checkpoint with the smallest one stays, too (default '')

---Saves a checkpoint while steps go on, and continues from the newest one that is there already: returns the steps done. A directory that cannot be written, or that another process saves to, is an error at once; one in writing comes from a later step.
---@param options orrery.Run.checkpoints.Options
---@return integer
function Run:checkpoints(options) end

---@class orrery.Run.eval.Options
---@field size? any samples in a batch, over all ranks; changes nothing but rounding (default false)
---@field limit? any so many samples at most; an endless stream needs it (default false)
---@field name? string the numbers are recorded as eval/loss and so on, at the run's step; with '' they are not (default 'eval')

---Evaluates the loss and the loss function's results, without dropout and updates: of one batch, or, with size, of a dataset or a stream from its beginning to its end. Of a dataset they are those of one batch that holds all of it: each sample counts once, means are divided by what they are divided by in a batch (samples, labels that count), and results with a row for each sample have all rows. Where that cannot be (samples that read others of their batch), several batches are an error. All ranks call it.
---@param data any
---@param options? orrery.Run.eval.Options
---@return orrery.StepResult
function Run:eval(data, options) end

---@class orrery.Run.fit.Options
---@field data any a dataset or a stream to train on
---@field size integer samples in a batch, over all ranks
---@field epochs? integer so many passes over the data in all, those before a checkpoint among them
---@field steps? integer instead of epochs: the last step
---@field shuffle? any of a dataset: false leaves the samples in their order
---@field order? any of a dataset: a function that lists the samples of an epoch, as Dataset:batches has it
---@field workers? any of a dataset: threads that read and decode a batch ahead, one if left out
---@field last? any with epochs: 'drop' leaves out what does not fill a batch at the end of an epoch
---@field eval? any a dataset or a stream that ends, which is evaluated (default false)
---@field every? integer steps between two evaluations; without it one at the end of each epoch, and with both one at the end (default 0)
---@field eval_size? integer samples in a batch of the evaluation; as many as in one of the training if left out (default 0)
---@field eval_limit? integer so many samples of eval at most; an endless stream needs it (default 0)
---@field best? string the result of the evaluation that tells which is the best, 'loss' if left out (default '')
---@field mode? string 'max': the largest one is the best (default 'min')
---@field patience? integer training ends after so many evaluations, one after another, of which none was the best; without it it does not (default 0)
---@field checkpoints? any {dir =, every =, keep = 2} as Run:checkpoints has them; without every one is saved at the end of each epoch; the one of the best evaluation stays, too (default false)
---@field on? table functions: step(step, result, epoch) after each step, epoch(epoch, evaluation) after each epoch, with the entry of history that was made at its end (default {})
---@field log? any a line for each evaluation, the last step, and with epochs each of them, with the loss and its results; a number: also every so many steps; false: none (default true)

---Trains by a loop over batches, step, eval and checkpoints, and goes on where its newest checkpoint is. Returns {steps, epochs, stopped (whether patience ran out), best = {step, epoch, value, path of its checkpoint}, history = a list of evaluations {step, epoch, results = by name}}. All ranks call it.
---@param options orrery.Run.fit.Options
---@return table
function Run:fit(options) end

---@class orrery.Run.record.Options
---@field step? integer left out: the steps of the run
---@field as? string as of orrery.record

---As orrery.record, among the records of this run, at its step.
---@param name string
---@param value any
---@param options? orrery.Run.record.Options
function Run:record(name, value, options) end

---Writes a checkpoint with this text into a directory, or to an address of a server; all ranks call it. With wait = false it is copied, and written while the next steps are taken; an error comes from a later step, save or finish_save, or at the end. In the place of the text, {extra = '', wait = true, format = ''} says the same; format = 'dcp' is that of torch.distributed.checkpoint.
---@param directory string
---@param extra? any
---@param wait? boolean
function Run:save(directory, extra, wait) end

---@class orrery.StepResult
---@field step integer
local StepResult = {}

---The loss; waits for the step.
---@return number
function StepResult:mean() end

---An output by name: 'loss', 'grad_norm', the loss function's own.
---@param name string
---@return number | orrery.HostTensor
function StepResult:get(name) end

---The names that get() knows.
---@return string[]
function StepResult:names() end

---@class orrery.Field
---@field shape integer[]
---@field dtype orrery.DType
local Field = {}

---Loads the whole field.
---@return orrery.HostTensor
function Field:read() end

---@class orrery.Program
local Program = {}

---Computes the results for these inputs.
---@param inputs table
---@param scalars? table
---@return orrery.HostTensor ...
function Program:run(inputs, scalars) end

---@class orrery.Draft
local Draft = {}

---All values of a role (param, grad, batch, activation, ...): id, name, dims, dtype, bytes, region, line, op, phase, runs (the phase that the op runs in: forward also for derivatives that a loss is made of), batch (none, samples, sum or mean), the number of the op (maker), whose output it is (output), and the chunk of the model that it belongs to (chunk).
---@param role string
---@return orrery.Value[]
function Draft:values(role) end

---Ranks that no earlier strategy of the stack has taken.
---@return integer
function Draft:ranks_left() end

---Ranks on an axis, 0 if there is none; "batch": on all that gradients are summed over.
---@param name string
---@return integer
function Draft:axis_size(name) end

---Numbers of the values that the op of a value reads.
---@param value orrery.Value|orrery.Tensor|integer
---@return integer[]
function Draft:inputs(value) end

---The factor of each dim of an op's input (0: of its output); -1: cannot be cut.
---@param value orrery.Value|orrery.Tensor|integer
---@param input? integer
---@return integer[]
function Draft:rule(value, input) end

---Makes a mesh axis over `size` ranks (0: all that are left); its size.
---@param name string
---@param size? integer
---@return integer
function Draft:axis(name, size) end

---Sees an axis as two: `size` neighbours form `inner`, equal places in them `outer`.
---@param axis string
---@param outer string
---@param inner string
---@param size integer
function Draft:halve(axis, outer, inner, size) end

---Cuts a value along a dim over the ranks of an axis: batch fields along dim 1 are dealt; any other cut, over one axis or several, lets the ranks share the work on every sample, and what reads the value follows.
---@param value orrery.Value|orrery.Tensor|integer
---@param axis string
---@param dim integer
function Draft:place(value, axis, dim) end

---Sums a gradient over an axis, in buckets of about `bucket` bytes.
---@param value orrery.Value|orrery.Tensor|integer
---@param axis string
---@param bucket? integer
function Draft:reduce(value, axis, bucket) end

---A line for `orrery plan`.
---@param text string
function Draft:remark(text) end

---Runs a rank's microbatches one after another.
function Draft:loop() end

---Deals the model in chunks: `where` lists their ranks on the axis, `modules` what is in them.
---@param axis string
---@param where integer|integer[]
---@param modules? any
function Draft:stage(axis, where, modules) end

---Lets a forward activation wait for backward in the tier host or disk.
---@param value orrery.Value|orrery.Tensor|integer
---@param tier string
function Draft:wait_in(value, tier) end

---Keeps sums over an axis in shares of a dim where ops can work on them.
---@param axis string
---@param dim integer
function Draft:scatter(axis, dim) end

---Makes sums over dims cut over an axis trees of so many partial sums, on any number of ranks.
---@param axis string
---@param chunks integer
function Draft:chunk(axis, chunks) end

---@class orrery.Draft.shard.Options
---@field what? string state, gradient or param: each includes the ones before (default 'state')
---@field axis? string the axis that deals the batch, or its inner half (default 'data')
---@field unit? integer parameters of equal number travel together (default 0)
---@field owner? integer the coordinate that holds it whole; -1: cut evenly (default -1)
---@field each? boolean gathered, and gradients sent, for each microbatch (default false)
---@field rows? boolean cut between rows of the first dim: a rank has whole rows (default false)

---Cuts the training of a parameter over the ranks that share the batch.
---@param value orrery.Value|orrery.Tensor|integer
---@param options orrery.Draft.shard.Options
function Draft:shard(value, options) end

---Gives no microbatches to the first ranks of the axis that deals the batch.
---@param axis string
---@param ranks integer
function Draft:idle(axis, ranks) end

---Deals microbatches to the ranks of the axis in proportion to their shares.
---@param axis string
---@param shares integer|integer[]
function Draft:deal(axis, shares) end

---Keeps a parameter or state in the tier host or disk between its uses.
---@param value orrery.Value|orrery.Tensor|integer
---@param tier string
---@param directory? string
function Draft:offload(value, tier, directory) end

---Adds an op of a kind (docs/ops.md); all its outputs. Arithmetic of tensors adds ops as well.
---@param kind string
---@param inputs any[] values
---@param attributes? table integers, numbers, texts and lists of integers, by name
---@return orrery.Tensor ...
function Draft:op(kind, inputs, attributes) end

---Says where ops that are added from now on belong: to the module and stage of a value's op (nil: to none), and to a phase, forward, backward or update.
---@param value any
---@param phase string
function Draft:beside(value, phase) end

---Lets ops that are added from now on stand right before the op that makes a value, in their order; nil: right before what reads them, as at first.
---@param value? any
function Draft:before(value) end

---Adds a copy of the op that makes a value, on other inputs of the same types; the numbers of all its outputs.
---@param value orrery.Value|orrery.Tensor|integer
---@param phase string
---@param inputs any[] values
---@return integer ...
function Draft:copy(value, phase, inputs) end

---Lets what reads a value read `by`, of the same type: all uses, or those of ops of a phase, or results. What `by` is computed from stays.
---@param value orrery.Value|orrery.Tensor|integer
---@param by orrery.Value|orrery.Tensor|integer
---@param uses? string all, forward, backward, update or results
function Draft:replace(value, by, uses) end

---Lets the op that makes `of` alone read `by` in place of a value.
---@param of orrery.Value|orrery.Tensor|integer
---@param value orrery.Value|orrery.Tensor|integer
---@param by orrery.Value|orrery.Tensor|integer
function Draft:reread(of, value, by) end

---@class orrery.Draft.retype.Options
---@field compute? orrery.DType what it computes in where it did so in the value's dtype
---@field store? orrery.DType what a sum or a cast is stored in

---Types a value's op anew from what it reads now.
---@param value orrery.Value|orrery.Tensor|integer
---@param options? orrery.Draft.retype.Options
function Draft:retype(value, options) end

---The op that makes a value: {kind =, attributes =, fn = of pointwise}.
---@param value orrery.Value|orrery.Tensor|integer
---@return table
function Draft:maker(value) end

---Whether the program is a training step's.
---@return boolean
function Draft:trains() end

---In transform_forward: differentiates the loss times a number of f32, by which gradients are divided.
---@param value orrery.Value|orrery.Tensor|integer
function Draft:cotangent(value) end

---Makes a value a result of the step. One named skipped_steps counts the steps that have changed nothing.
---@param name string
---@param value orrery.Value|orrery.Tensor|integer
function Draft:output(name, value) end

---Lets the ranks of an axis that deals the batch train apart: parameters and states vary on it.
---@param axis string
function Draft:independent(axis) end

---Calls hook(draft, parameter, gradient) for each parameter in place of the gradient's sum over an axis: `gradient` is each rank's summand of the mean gradient, and the hook returns what all agree on.
---@param axis string
---@param hook function
function Draft:exchange(axis, hook) end

---Runs a program after every so many steps; hook(draft, round) writes each of `rounds`, which take turns, from 1.
---@param steps integer
---@param rounds integer
---@param hook function
function Draft:every(steps, rounds, hook) end

---A value of the program as a tensor.
---@param value orrery.Value|orrery.Tensor|integer
---@return orrery.Tensor
function Draft:tensor(value) end

---@class orrery.Draft.state.Options
---@field init? string zeros, parameter: what the parameter begins with, or normal: numbers of N(0, 1) (default 'zeros')
---@field shape? integer|integer[] one of its own instead of the parameter's
---@field varying? string the axis on which each rank has one of its own (default '')
---@field leave? string how those become one on another number of ranks: mean, sum, first or refuse (default 'mean')

---In a hook: a tensor that the strategy keeps beside a parameter.
---@param parameter orrery.Tensor
---@param name string
---@param options? orrery.Draft.state.Options
---@return orrery.Tensor
function Draft:state(parameter, name, options) end

---Calls hook(draft, loss, norm) once the update of a training step is written. `decides` names what it decides for all ranks, "loss scale": then it comes after the hooks that decide nothing, and `norm` is the squared norm of all gradients.
---@param hook function
---@param decides? string
function Draft:complete(hook, decides) end

---Calls hook(draft) when all edits of all strategies are done, of evaluations too: where parameters that lie in pieces are gathered is written then.
---@param hook function
function Draft:at_last(hook) end

---@class orrery.Draft.own_state.Options
---@field init? number what it begins with (default 0)
---@field shape? integer|integer[] left out: one number
---@field dtype? orrery.DType of its elements (default 'f32')

---A tensor that the strategy keeps for the whole step.
---@param name string
---@param options? orrery.Draft.own_state.Options
---@return orrery.Tensor
function Draft:own_state(name, options) end

---In a hook: what a parameter or state will hold afterwards.
---@param state orrery.Tensor
---@param value orrery.Tensor
function Draft:update(state, value) end

---In a hook: what a parameter or state will hold afterwards, as far as the program says.
---@param state orrery.Tensor
---@return orrery.Tensor
function Draft:updated(state) end

---@class orrery.World
---@field rank integer
---@field size integer
---@field local_rank integer
---@field local_size integer
local World = {}

---These ranks as a world of their own, counted from 0 in their order; all ranks call it.
---@param ranks integer|integer[]
---@return orrery.World
function World:group(ranks) end

---@class orrery.World.send.Options
---@field to integer rank that receives
---@field tag? integer tells messages between the same ranks apart (default 0)

---Sends to one rank, which receives.
---@param x any
---@param options? orrery.World.send.Options
function World:send(x, options) end

---@class orrery.World.recv.Options
---@field from integer rank that sends
---@field tag? integer tells messages between the same ranks apart (default 0)

---Receives a tensor of the type of `x` from one rank.
---@param x any
---@param options? orrery.World.recv.Options
---@return orrery.HostTensor
function World:recv(x, options) end

---Waits until all ranks are here.
function World:barrier() end

---For a rank without data: adds zeros to the others' allreduces until all have joined; the last to join.
---@return integer
function World:join() end

---@class orrery.World.allgather.Options
---@field name? string for messages; all ranks must give the same (default '')

---All ranks' tensors joined along dim 1, in rank order; dim 1 may differ.
---@param x any
---@param options? orrery.World.allgather.Options
---@return any
function World:allgather(x, options) end

---@class orrery.World.allgather_async.Options
---@field name? string for messages; all ranks must give the same (default '')

---The same without waiting: handle:wait() gives the result.
---@param x any
---@param options? orrery.World.allgather_async.Options
---@return orrery.Handle
function World:allgather_async(x, options) end

---A list of all ranks' Lua values, in rank order.
---@param value? any
---@return any[]
function World:allgather_object(value) end

---@class orrery.World.allreduce.Options
---@field op? string sum, mean, min, max or prod (default 'sum')
---@field name? string for messages; all ranks must give the same (default '')

---Reduces over all ranks; all get the result.
---@param x any
---@param options? orrery.World.allreduce.Options
---@return any
function World:allreduce(x, options) end

---@class orrery.World.allreduce_async.Options
---@field op? string sum, mean, min, max or prod (default 'sum')
---@field name? string for messages; all ranks must give the same (default '')

---The same without waiting: handle:wait() gives the result.
---@param x any
---@param options? orrery.World.allreduce_async.Options
---@return orrery.Handle
function World:allreduce_async(x, options) end

---@class orrery.World.alltoall.Options
---@field splits? integer|integer[] rows for each rank; left out: equal parts
---@field name? string for messages; all ranks must give the same (default '')

---Part r of dim 1 goes to rank r; the rows that came from each rank, too.
---@param x any
---@param options? orrery.World.alltoall.Options
---@return orrery.HostTensor, integer[]
function World:alltoall(x, options) end

---@class orrery.World.alltoall_async.Options
---@field splits? integer|integer[] rows for each rank; left out: equal parts
---@field name? string for messages; all ranks must give the same (default '')

---The same without waiting: handle:wait() gives the result.
---@param x any
---@param options? orrery.World.alltoall_async.Options
---@return orrery.Handle
function World:alltoall_async(x, options) end

---@class orrery.World.broadcast.Options
---@field root? integer rank whose value all get (default 0)
---@field name? string for messages; all ranks must give the same (default '')

---All ranks get the root's value.
---@param x any
---@param options? orrery.World.broadcast.Options
---@return any
function World:broadcast(x, options) end

---@class orrery.World.broadcast_async.Options
---@field root? integer rank whose value all get (default 0)
---@field name? string for messages; all ranks must give the same (default '')

---The same without waiting: handle:wait() gives the result.
---@param x any
---@param options? orrery.World.broadcast_async.Options
---@return orrery.Handle
function World:broadcast_async(x, options) end

---@class orrery.World.broadcast_object.Options
---@field root? integer rank whose value all get (default 0)

---All ranks get the root's Lua value: nil, a boolean, a number, a string or a table of these.
---@param value? any
---@param options? orrery.World.broadcast_object.Options
---@return any
function World:broadcast_object(value, options) end

---@class orrery.World.reduce_scatter.Options
---@field op? string sum, mean, min, max or prod (default 'sum')
---@field name? string for messages; all ranks must give the same (default '')

---Reduces, then each rank keeps its part of dim 1; the first may have one row more.
---@param x any
---@param options? orrery.World.reduce_scatter.Options
---@return any
function World:reduce_scatter(x, options) end

---@class orrery.World.reduce_scatter_async.Options
---@field op? string sum, mean, min, max or prod (default 'sum')
---@field name? string for messages; all ranks must give the same (default '')

---The same without waiting: handle:wait() gives the result.
---@param x any
---@param options? orrery.World.reduce_scatter_async.Options
---@return orrery.Handle
function World:reduce_scatter_async(x, options) end

---@class orrery.Handle
local Handle = {}

---Whether wait() would return at once.
---@return boolean
function Handle:poll() end

---Waits for the call and returns its result.
---@return any
function Handle:wait() end

---@class orrery.Weights
local Weights = {}

---Of all tensors, sorted.
---@return string[]
function Weights:names() end

---A tensor as the state wants it.
---@param name string
---@param to orrery.State
---@param transpose boolean
---@return orrery.HostTensor
function Weights:read(name, to, transpose) end

---@class orrery.data
orrery.data = {}

---Files below a directory with these endings, sorted.
---@param directory string
---@param endings any[]
---@return string[]
function orrery.data.files(directory, endings) end

---Fields from HostTensors, lists or .npy paths; the first dim counts the samples. Files are read a sample at a time.
---@param fields table
---@return orrery.Dataset
function orrery.data.arrays(fields) end

---@class orrery.data.arrow.Options
---@field dtypes? table of fields, {ids = 'i32'}, or 'class', 'image' (default {})
---@field pad? table of fields, {ids = 0}: what lists are filled up with to the longest of all (default {})
---@field nulls? table of fields, {x = 0}: what stands for values that are missing, an error else (default {})
---@field size? integer edge of the square in the middle of images, the shorter edge resized to it (default 0)
---@field split? any of a directory with several: 'train' (default false)
---@field memory? integer bytes of record batches that are kept (default 1073741824)

---Columns of Arrow files (Feather) and streams, and of directories that Hugging Face's datasets saves or keeps in its cache, as data.parquet has them of Parquet.
---@param paths any
---@param fields table
---@param options? orrery.data.arrow.Options
---@return orrery.Dataset
function orrery.data.arrow(paths, fields, options) end

---@class orrery.data.bpe.Options
---@field split? string where text is cut before merging: as gpt2, gpt4 or o200k does (default 'gpt2')
---@field special? any texts that are one token: a list of those that the vocabulary has (others get the next ids), or ids by text (default false)

---A byte-level BPE from vocab.json and merges.txt.
---@param vocab string
---@param merges string
---@param options? orrery.data.bpe.Options
---@return orrery.Tokenizer
function orrery.data.bpe(vocab, merges, options) end

---@class orrery.data.cifar.Options
---@field classes? integer 10 or 100 (default 10)
---@field dtype? orrery.DType of x: bytes divided by 255 where it is real, 'u8' as they are (default 'f32')

---Binary files of CIFAR-10 or CIFAR-100: x the images [3,32,32], y the labels, of CIFAR-100 the fine ones and coarse; a path or a list of them.
---@param paths any
---@param options? orrery.data.cifar.Options
---@return orrery.Dataset
function orrery.data.cifar(paths, options) end

---Several datasets of the same fields, one after another.
---@param parts any[]
---@return orrery.Dataset
function orrery.data.concat(parts) end

---@class orrery.data.csv.Options
---@field dtypes? table of fields, {y = 'i32'}; without one f32, and an error for a whole number that f32 would round; 'class' makes numbers of texts, by their order in data.classes, 'text' keeps their bytes, filled up by zeros to the longest: x:text() of a sample (default {})

---A table of text with column names in its first line, kept in memory: fields {x = {'height', 'width'}, y = 'kind'} are columns by name, a list of them or one.
---@param path string
---@param fields table
---@param options? orrery.data.csv.Options
---@return orrery.Dataset
function orrery.data.csv(path, fields, options) end

---@class orrery.data.from.Options
---@field dtypes? table of fields, {y = 'i32'}; integers give i64 else, other numbers f32 (default {})
---@field shuffle? integer how many samples wait, out of which the next is drawn at random, 0 for none (default 0)
---@field seed? integer of that (default 1)
---@field pad? table what lists of different lengths are filled up with, by field: {x = 0, y = -1} (default {})
---@field lengths? table with pad: a batch has samples that are filled up to the same one of these lengths, not to the longest of the batch (default {})

---A stream of samples: `make()` is called where it begins and again at its end, and returns a function whose results are samples {field = number, list or HostTensor}, and nil at the end.
---@param make function
---@param options? orrery.data.from.Options
---@return orrery.Stream
function orrery.data.from(make, options) end

---@class orrery.data.hdf5.Options
---@field dtypes? table of fields, {x = 'f32'}, instead of those that they have; 'class' makes numbers of texts, by their order in data.classes (default {})

---Arrays in files of HDF5: fields {x = 'images', y = 'train/labels'} are those of these paths within a file, of numbers, booleans, or texts (their bytes, filled up by zeros: x:text() of a sample); the first dim counts the samples. A path, or a list of them, one after another. A sample is read when it is asked for, texts when it is opened.
---@param paths any
---@param fields table
---@param options? orrery.data.hdf5.Options
---@return orrery.Dataset
function orrery.data.hdf5(paths, fields, options) end

---@class orrery.data.idx.Options
---@field dtype? orrery.DType of x: bytes divided by 255 where it is real, 'u8' as they are (default 'f32')

---MNIST's idx files, also packed by gzip or zstd: x the images [C,H,W], y the labels.
---@param images string
---@param labels string
---@param options? orrery.data.idx.Options
---@return orrery.Dataset
function orrery.data.idx(images, labels, options) end

---@class orrery.data.images.Options
---@field size integer edge of the square in the middle, the shorter edge resized to it
---@field dtype? orrery.DType of x: bytes divided by 255 where it is real, 'u8' as they are (default 'f32')
---@field column? any of a table: 'file', the column that names files (default false)
---@field folder? any of a table: where these are; in its own directory if left out (default false)
---@field ending? string of a table: '.jpg', what its names lack (default '')
---@field fields? table of a table: other columns, {y = 'breed'}, as data.csv has them (default {})
---@field dtypes? table of these, {y = 'class'}, as data.csv has them (default {})

---Images in PNG, JPEG, WebP, BMP and TIFF: x [3,size,size]. The path is that of a directory with one for each class, in which files are, also in directories of their own: y is the class by the order of the names, which are data.classes; samples are in the order of torchvision's ImageFolder, without hidden files and directories. Or it is that of a table of text, one column of which names files. A file is read when its sample is.
---@param path string
---@param options orrery.data.images.Options
---@return orrery.Dataset
function orrery.data.images(path, options) end

---@class orrery.data.jsonl.Options
---@field dtypes? table of fields, {ids = 'i32'}; without one f32, and an error for a whole number that f32 would round; 'class' makes numbers of texts, by their order in data.classes, 'text' keeps their bytes, filled up by zeros to the longest: x:text() of a sample (default {})

---JSON lines, each an object that is a sample, also packed by gzip or zstd, kept in memory: fields {x = {'height', 'width'}, ids = 'input_ids'} are values by their keys, a list of keys or one; the value of one may be a list of numbers, or of lists.
---@param path string
---@param fields table
---@param options? orrery.data.jsonl.Options
---@return orrery.Dataset
function orrery.data.jsonl(path, fields, options) end

---Several datasets of the same fields, each with its share of the samples. An epoch is as long as it takes to see all of every part.
---@param parts any[]
---@param weights any[]
---@return orrery.Dataset
function orrery.data.mix(parts, weights) end

---What the data plugin of this name reads at a path, or at each of a list of them.
---@param format string
---@param paths any
---@param options? table those of the plugin
---@param dtypes? table of fields, {x = 'u8'}, instead of those that the plugin gives them
---@return orrery.Dataset
function orrery.data.open(format, paths, options, dtypes) end

---@class orrery.data.parquet.Options
---@field dtypes? table of fields, {ids = 'i32'}; without one that of the column; 'class' makes numbers of texts, by their order in data.classes; 'image' says that bytes are those of PNG or JPEG files (default {})
---@field pad? table of fields, {ids = 0}: what lists are filled up with to the longest of all (default {})
---@field nulls? table of fields, {x = 0}: what stands for values that are missing, an error else (default {})
---@field size? integer edge of the square in the middle of images, the shorter edge resized to it (default 0)
---@field split? any of a directory with several: 'train' (default false)
---@field memory? integer bytes of row groups that are kept (default 1073741824)

---Columns of Parquet files: fields {x = {'height', 'width'}, ids = 'input_ids'} are columns by name, a list of them or one: of numbers, of lists of numbers, of texts (their bytes, filled up by zeros: x:text() of a sample) and of images. A path, a list of paths, or directories. A row group is read when a sample of it is.
---@param paths any
---@param fields table
---@param options? orrery.data.parquet.Options
---@return orrery.Dataset
function orrery.data.parquet(paths, fields, options) end

---@class orrery.data.sentencepiece.Options
---@field bos? boolean whether texts get the id of their beginning, as LLaMA's do (default false)
---@field eos? boolean whether they get that of their end, as T5's do (default false)

---A tokenizer of SentencePiece, from its model: its ids and its texts.
---@param path string
---@param options? orrery.data.sentencepiece.Options
---@return orrery.Tokenizer
function orrery.data.sentencepiece(path, options) end

---@class orrery.data.text.Options
---@field ctx integer tokens in a sample
---@field tokens? any 'chars', 'bytes' or a tokenizer, such as data.bpe's (default 'chars')
---@field string? boolean source is the text itself (default false)

---Text as fields x and y (x one token later); a path, a list of paths or text.
---@param source any
---@param options orrery.data.text.Options
---@return orrery.Dataset
function orrery.data.text(source, options) end

---@class orrery.data.tiktoken.Options
---@field split? any where text is cut before merging: as 'gpt2' (r50k_base, p50k_base), 'gpt4' (cl100k_base) or 'o200k' does; needed unless the number of tokens is that of one of these (default false)
---@field special? any texts that are one token: ids by text, or a list that gets the next ids (default false)

---A byte-level BPE from tiktoken's file, a line of base64 and id for each token, such as cl100k_base.tiktoken.
---@param path string
---@param options? orrery.data.tiktoken.Options
---@return orrery.Tokenizer
function orrery.data.tiktoken(path, options) end

---What the data plugin of this name makes, of files or of a text.
---@param plugin string
---@param options? table those of the plugin
---@param text? string what it learns from
---@param name? string what errors call the text
---@return orrery.Tokenizer
function orrery.data.tokenizer(plugin, options, text, name) end

---@class orrery.data.tokenizer_json.Options
---@field add_special_tokens? boolean whether texts get the ids of begin and end that the file says (default true)
---@field skip_special_tokens? boolean whether decode leaves special tokens out (default true)

---A tokenizer of Hugging Face, from its tokenizer.json: its ids, and its texts.
---@param path string
---@param options? orrery.data.tokenizer_json.Options
---@return orrery.Tokenizer
function orrery.data.tokenizer_json(path, options) end

---@class orrery.data.tokens.Options
---@field length integer tokens in a sample
---@field dtype? any how a token is stored: 'u8', 'u16', 'u32', 'u64', 'i8', 'i16', 'i32', 'i64'; without it as NAME.idx or the header of llm.c's files says, else u16 (default false)

---Files of token ids alone, such as nanoGPT's train.bin, as fields x and y (x one token later); a path or a list of them, one after another: a sample may begin in one file and end in the next. They are read a window at a time and may be larger than the memory. Of Megatron's files name NAME.idx, which says how the tokens of NAME.bin are stored.
---@param paths any
---@param options orrery.data.tokens.Options
---@return orrery.Dataset
function orrery.data.tokens(paths, options) end

---@class orrery.data.train_bpe.Options
---@field vocab integer tokens at the end, bytes and special ones included
---@field min_frequency? integer how often a pair must occur to be merged (default 2)
---@field split? string where text is cut before merging: as gpt2, gpt4 or o200k does (default 'gpt2')
---@field special? any a list of texts that are one token; they get the first ids (default false)
---@field string? boolean source is the text itself (default false)

---Learns a byte-level BPE from a path, a list of paths or text: the tokens of Hugging Face's BpeTrainer.
---@param source any
---@param options orrery.data.train_bpe.Options
---@return orrery.Tokenizer
function orrery.data.train_bpe(source, options) end

---@class orrery.data.webdataset.Options
---@field size? integer edge of the square in the middle of images, the shorter edge resized to it (default 0)
---@field dtypes? table of fields, {x = 'u8'}, instead of those that they have (default {})

---WebDataset's shards, tar archives in which files of one name but different endings are a sample: fields {x = 'jpg', y = 'cls'} are files by their ending, {x = {'jpg', 'png'}} those of either. A path, in which {000..009} stands for ten, or a list. Images are [3,size,size]; cls, index and id whole numbers; npy arrays; other files are bytes, filled up by zeros to the longest: x:text() of a sample. The headers of all shards are read when they are opened, a file when its sample is.
---@param paths any
---@param fields table
---@param options? orrery.data.webdataset.Options
---@return orrery.Dataset
function orrery.data.webdataset(paths, fields, options) end

---@class orrery.Dataset
---@field samples integer
---@field vocab integer
---@field classes string[]
local Dataset = {}

---@class orrery.Dataset.batch.Options
---@field size integer samples in the whole batch, over all ranks
---@field shuffle? boolean a new order in every epoch; random windows of text (default true)
---@field seed? integer the job's seed if left out

---The batch of a step: lazy fields, each rank loads its rows.
---@param step integer
---@param options orrery.Dataset.batch.Options
---@return table
function Dataset:batch(step, options) end

---@class orrery.Dataset.batches.Options
---@field size integer samples in the whole batch, over all ranks
---@field steps? integer last step; goes on for ever if left out
---@field epochs? integer instead of steps: so many passes over all samples, each of which begins a batch of its own
---@field last? string with epochs: 'short': the last batch of an epoch has what is left, or 'drop': what does not fill a batch is left out; 'short' if left out
---@field from? integer first step; run.steps + 1 continues a run (default 1)
---@field shuffle? boolean a new order in every epoch; random windows of text (default true)
---@field order? function order(epoch, random) lists the samples of an epoch, from 1, some left out or several times, in each epoch as many. It goes by these two alone, so that a run that continues has the same: random(), random(n) and random(m, n) are as math.random's
---@field seed? integer of all orders; the job's seed if left out
---@field workers? integer threads that read and decode a batch ahead; they change no bit (default 1)

---for step, batch, epoch in data:batches{size = 32} do. Steps and epochs count from 1. Files are read ahead while a step is under way.
---@param options orrery.Dataset.batches.Options
---@return fun(): integer, table, integer
function Dataset:batches(options) end

---The first part and the rest.
---@param fraction number
---@return orrery.Dataset, orrery.Dataset
function Dataset:split(fraction) end

---The samples at these positions, from 1, in this order; a position may be there several times.
---@param positions integer|integer[]
---@return orrery.Dataset
function Dataset:take(positions) end

---Every size-th sample, from the rank-th on.
---@param rank integer
---@param size integer
---@return orrery.Dataset
function Dataset:shard(rank, size) end

---The samples that change(sample, random) returns: tables of HostTensors, lists or numbers by the names of fields, as its argument is one of HostTensors. It is called when a sample is read, on the rank that needs it, and goes by its arguments alone, so that all ranks and runs that continue have the same: random(), random(n) and random(m, n) are as math.random's, other numbers in every epoch.
---@param change function
---@return orrery.Dataset
function Dataset:map(change) end

---The token ids of a text.
---@param text string
---@return orrery.HostTensor
function Dataset:encode(text) end

---The text of a list of token ids.
---@param ids integer|integer[]
---@return string
function Dataset:decode(ids) end

---@class orrery.Dataset.augment.Options
---@field field? string which field holds them (default 'x')
---@field crop? integer edge of a random square; 0: the whole image (default 0)
---@field pad? integer zeros around the image before it is cropped (default 0)
---@field flip? boolean every second one is mirrored, left and right (default false)
---@field mean? table one number for each channel, subtracted (default {})
---@field std? table one number for each channel, by which is divided then (default {})

---Images [C,H,W] changed at random: the same for the same seed, epoch and sample, on any number of ranks.
---@param options orrery.Dataset.augment.Options
---@return orrery.Dataset
function Dataset:augment(options) end

---The samples for which keep(sample) is true. It is called once with each sample, a table of HostTensors by the names of fields; all ranks must get the same of it.
---@param keep function
---@return orrery.Dataset
function Dataset:filter(keep) end

---@class orrery.Dataset.readable.Options
---@field file? any a path that keeps what was found: later starts leave out the same samples and read none (default false)

---The samples that can be read, and how many are left out, which a warning tells. All samples are read once, a share by each rank; all ranks call it.
---@param options? orrery.Dataset.readable.Options
---@return Dataset, integer
function Dataset:readable(options) end

---@class orrery.Dataset.weighted.Options
---@field samples? integer how many an epoch has; as many as the dataset if left out

---An order for data:batches {order = ...}: samples are drawn, each as often as its weight asks for, the same one several times, as torch's WeightedRandomSampler does.
---@param weights any[]
---@param options? orrery.Dataset.weighted.Options
---@return function
function Dataset:weighted(weights, options) end

---@class orrery.Tokenizer
---@field vocab integer
local Tokenizer = {}

---The token ids of a text.
---@param text string
---@return orrery.HostTensor
function Tokenizer:encode(text) end

---The text of a list of token ids.
---@param ids integer|integer[]
---@return string
function Tokenizer:decode(ids) end

---Writes vocab.json and merges.txt, as data.bpe reads them; of a tokenizer from data.tiktoken ranks.tiktoken, as data.tiktoken reads it, without the special tokens. None of them says where text is cut.
---@param directory string
function Tokenizer:save(directory) end

---@class orrery.Region
local Region = {}

---@class orrery.Attached
local Attached = {}

---Changes the parameters by these gradients, one for each, in the order of orrery.parameters(model).
---@param gradients any[] a state or a HostTensor for each
function Attached:update(gradients) end

---Writes the optimizer's states and how many updates it has made to a safetensors file; all ranks call it. The model's weights are its own save_weights'.
---@param path string
function Attached:save(path) end

---Goes on from such a file.
---@param path string
function Attached:load(path) end

---@class orrery.metrics
orrery.metrics = {}

---@class orrery.metrics.accuracy.Options
---@field ignore? integer positions with this label do not count (default nil)
---@field threshold? number of scores [...]: of probabilities; 0 for logits (default 0.5)

---The share of labels that are predicted: of scores [..., classes] the class with the largest, of scores [...] 1 where they are above the threshold. As a result of a loss function it is also that of a dataset, by run:eval.
---@param scores orrery.Tensor
---@param labels orrery.Tensor integers [...]
---@param options? orrery.metrics.accuracy.Options
---@return orrery.Tensor
function orrery.metrics.accuracy(scores, labels, options) end

---@class orrery.metrics.f1.Options
---@field average? string of several classes: 'macro': the mean over those that occur; 'micro': all as one; 'none': [classes] (default 'macro')
---@field ignore? integer positions with this label do not count (default nil)
---@field threshold? number of scores [...]: of probabilities; 0 for logits (default 0.5)

---The harmonic mean of precision and recall of a class; 0 where both are. Of scores [...] that of label 1. As a result of a loss function it is also that of a dataset, by run:eval.
---@param scores orrery.Tensor
---@param labels orrery.Tensor integers [...]
---@param options? orrery.metrics.f1.Options
---@return orrery.Tensor
function orrery.metrics.f1(scores, labels, options) end

---@class orrery.metrics.perplexity.Options
---@field ignore? integer positions with this label do not count (default nil)

---exp of the mean cross-entropy over all positions that count. As a result of a loss function it is also that of a dataset, by run:eval: exp of the mean, not the mean of exp.
---@param logits orrery.Tensor
---@param labels orrery.Tensor integers [...]
---@param options? orrery.metrics.perplexity.Options
---@return orrery.Tensor
function orrery.metrics.perplexity(logits, labels, options) end

---@class orrery.metrics.precision.Options
---@field average? string of several classes: 'macro': the mean over those that occur; 'micro': all as one; 'none': [classes] (default 'macro')
---@field ignore? integer positions with this label do not count (default nil)
---@field threshold? number of scores [...]: of probabilities; 0 for logits (default 0.5)

---Of what is predicted to be of a class, the share that is; 0 where nothing is predicted. Of scores [...] that of label 1. As a result of a loss function it is also that of a dataset, by run:eval.
---@param scores orrery.Tensor
---@param labels orrery.Tensor integers [...]
---@param options? orrery.metrics.precision.Options
---@return orrery.Tensor
function orrery.metrics.precision(scores, labels, options) end

---@class orrery.metrics.recall.Options
---@field average? string of several classes: 'macro': the mean over those that occur; 'micro': all as one; 'none': [classes] (default 'macro')
---@field ignore? integer positions with this label do not count (default nil)
---@field threshold? number of scores [...]: of probabilities; 0 for logits (default 0.5)

---Of what is of a class, the share that is predicted to be; 0 where there is nothing. Of scores [...] that of label 1. As a result of a loss function it is also that of a dataset, by run:eval.
---@param scores orrery.Tensor
---@param labels orrery.Tensor integers [...]
---@param options? orrery.metrics.recall.Options
---@return orrery.Tensor
function orrery.metrics.recall(scores, labels, options) end

---@class orrery.nn
---@field init orrery.nn.init
orrery.nn = {}

---As nn.adaptive_avg_pool2d, over [batch, channels, length].
---@param size integer|integer[]
---@return orrery.Module
function orrery.nn.adaptive_avg_pool1d(size) end

---Means of [batch, channels, height, width] over so many windows: the i-th of n over a length L goes from floor(i*L/n) to ceil((i+1)*L/n), counted from 0.
---@param size integer|integer[] of the result, for all dims or for each
---@return orrery.Module
function orrery.nn.adaptive_avg_pool2d(size) end

---As nn.adaptive_avg_pool2d, over [batch, channels, depth, height, width].
---@param size integer|integer[]
---@return orrery.Module
function orrery.nn.adaptive_avg_pool3d(size) end

---Multi-head attention of [batch, time, heads * d] tensors: orrery.attention by its other name, with its options heads, kv_heads, causal, scale, dropout, mask, bias, window and offset.
---@param q orrery.Tensor
---@param k orrery.Tensor
---@param v orrery.Tensor
---@param options? table as orrery.attention takes them
---@return orrery.Tensor
function orrery.nn.attention(q, k, v, options) end

---@class orrery.nn.averaged.Options
---@field decay? number|boolean false: the plain mean of all values, as stochastic weight averaging takes it (default 0.999)
---@field from? integer the first step that counts (default 1)
---@field every? integer steps from one that counts to the next (default 1)
---@field name? string in front of the names of its parameters (default 'averaged')

---A frozen copy of a model (nn.copy) that follows it: after each step of a run, of optim.lbfgs or of an attached optimizer that trains the model, each of its parameters becomes decay times itself plus 1 - decay times the model's, and the first time the model's. Buffers are the model's. It predicts and samples as the model does and is part of checkpoints, in which `name` tells several apart.
---@param model orrery.Module
---@param options? orrery.nn.averaged.Options
---@return orrery.Module
function orrery.nn.averaged(model, options) end

---As nn.avg_pool2d, over [batch, channels, length].
---@param size integer|integer[]
---@param options? table
---@return orrery.Module
function orrery.nn.avg_pool1d(size, options) end

---@class orrery.nn.avg_pool2d.Options
---@field stride? integer|integer[] default size
---@field padding? integer|integer[] zeros on both sides (default 0)
---@field count_include_pad? boolean whether these zeros count (default true)

---The mean of each window of [batch, channels, height, width].
---@param size integer|integer[] of the window, for all dims or for each, as all numbers of the options
---@param options? orrery.nn.avg_pool2d.Options
---@return orrery.Module
function orrery.nn.avg_pool2d(size, options) end

---As nn.avg_pool2d, over [batch, channels, depth, height, width].
---@param size integer|integer[]
---@param options? table
---@return orrery.Module
function orrery.nn.avg_pool3d(size, options) end

---@class orrery.nn.batchnorm.Options
---@field eps? number default 1e-5
---@field momentum? number weight of a step's statistics in the running ones (default 0.1)
---@field affine? boolean whether there are a weight and a bias (default true)
---@field sync? boolean statistics of the whole batch instead of each microbatch's (default false)
---@field dtype? orrery.DType default 'f32'

---Each channel of [batch, channels, dims...] with mean 0 and variance 1 over the samples and their dims, scaled and shifted. In evaluation it takes the statistics of earlier steps, the buffers running_mean and running_var.
---@param channels integer
---@param options? orrery.nn.batchnorm.Options
---@return orrery.Module
function orrery.nn.batchnorm(channels, options) end

---@class orrery.nn.bce.Options
---@field reduction? string mean, sum or none (default 'mean')

---Binary cross-entropy of probabilities x and targets y of the same shape, both in [0, 1]. Logarithms below -100 count as -100. Of logits nn.bce_with_logits keeps more digits.
---@param x orrery.Tensor
---@param y orrery.Tensor
---@param options? orrery.nn.bce.Options
---@return orrery.Tensor
function orrery.nn.bce(x, y, options) end

---@class orrery.nn.bce_with_logits.Options
---@field pos_weight? orrery.Tensor|number how much positive targets count, one for all or one for each of the last dims (default 1)
---@field reduction? string mean, sum or none (default 'mean')

---Binary cross-entropy of the probabilities sigmoid(x) and targets y in [0, 1] of the same shape, also where these probabilities are nearly 0 or 1.
---@param x orrery.Tensor
---@param y orrery.Tensor|number
---@param options? orrery.nn.bce_with_logits.Options
---@return orrery.Tensor
function orrery.nn.bce_with_logits(x, y, options) end

---@class orrery.nn.bilinear.Options
---@field bias? boolean default true
---@field dtype? orrery.DType default 'f32'

---Called with x [..., first] and y [..., second]: x W y + b for each output, weights [outputs, first, second].
---@param first integer
---@param second integer
---@param outputs integer
---@param options? orrery.nn.bilinear.Options
---@return orrery.Module
function orrery.nn.bilinear(first, second, outputs, options) end

---As nn.conv2d, over [batch, inputs, length].
---@param inputs integer
---@param outputs integer
---@param size integer|integer[]
---@param options? table
---@return orrery.Module
function orrery.nn.conv1d(inputs, outputs, size, options) end

---@class orrery.nn.conv2d.Options
---@field stride? integer|integer[] default 1
---@field padding? integer|integer[]|string zeros on both sides; "same": as many as keep the dims, where stride is 1 (default 0)
---@field dilation? integer|integer[] default 1
---@field groups? integer shares of the channels that see nothing of each other (default 1)
---@field bias? boolean default true
---@field init? orrery.Initial how the weight begins (default nn.init.fan_in)
---@field dtype? orrery.DType default 'f32'

---Cross-correlation of [batch, inputs, height, width] with weights [outputs, inputs / groups, size...].
---@param inputs integer channels
---@param outputs integer channels
---@param size integer|integer[] of the window, for all dims or for each, as all numbers of the options
---@param options? orrery.nn.conv2d.Options
---@return orrery.Module
function orrery.nn.conv2d(inputs, outputs, size, options) end

---As nn.conv2d, over [batch, inputs, depth, height, width].
---@param inputs integer
---@param outputs integer
---@param size integer|integer[]
---@param options? table
---@return orrery.Module
function orrery.nn.conv3d(inputs, outputs, size, options) end

---As nn.conv_transpose2d, over [batch, inputs, length].
---@param inputs integer
---@param outputs integer
---@param size integer|integer[]
---@param options? table
---@return orrery.Module
function orrery.nn.conv_transpose1d(inputs, outputs, size, options) end

---@class orrery.nn.conv_transpose2d.Options
---@field stride? integer|integer[] default 1
---@field padding? integer|integer[] so much is cut off on both sides (default 0)
---@field output_padding? integer|integer[] so much is left of that behind, or added; less than the stride or dilation (default 0)
---@field dilation? integer|integer[] default 1
---@field groups? integer shares of the channels that see nothing of each other (default 1)
---@field bias? boolean default true
---@field init? orrery.Initial how the weight begins (default nn.init.fan_in)
---@field dtype? orrery.DType default 'f32'

---What the gradient of nn.conv2d does, as a layer: each place of [batch, inputs, height, width] adds a window of outputs to the result. The weight is [inputs, outputs / groups, size...].
---@param inputs integer channels
---@param outputs integer channels
---@param size integer|integer[] of the window, for all dims or for each, as all numbers of the options
---@param options? orrery.nn.conv_transpose2d.Options
---@return orrery.Module
function orrery.nn.conv_transpose2d(inputs, outputs, size, options) end

---As nn.conv_transpose2d, over [batch, inputs, depth, height, width].
---@param inputs integer
---@param outputs integer
---@param size integer|integer[]
---@param options? table
---@return orrery.Module
function orrery.nn.conv_transpose3d(inputs, outputs, size, options) end

---@class orrery.nn.convolution.Options
---@field bias? orrery.Tensor [outputs] (default nil)
---@field stride? integer|integer[] default 1
---@field padding? integer|integer[]|string as of nn.conv2d (default 0)
---@field dilation? integer|integer[] default 1
---@field groups? integer default 1

---What nn.conv1d, nn.conv2d and nn.conv3d compute, with a weight [outputs, inputs / groups, size...] that is given: a parameter of your own, or what another part of the model has computed. It has one to three dims more than these two.
---@param x orrery.Tensor [batch, inputs, dims...]
---@param weight orrery.Tensor
---@param options? orrery.nn.convolution.Options
---@return orrery.Tensor
function orrery.nn.convolution(x, weight, options) end

---A second model: made by the same constructor of the same arguments, of which modules and tensors are copied, too, with the values that parameters and buffers have now. It is trained for itself. Functions among the arguments stay the same.
---@param model orrery.Module
---@return orrery.Module
function orrery.nn.copy(model) end

---@class orrery.nn.cosine_embedding.Options
---@field margin? number default 0
---@field reduction? string mean, sum or none (default 'mean')

---Of pairs of rows a and b [..., dim] the mean of 1 - cos where y [...] is 1, and of max(0, cos - margin) where it is -1.
---@param a orrery.Tensor
---@param b orrery.Tensor
---@param y orrery.Tensor 1 or -1 for each pair
---@param options? orrery.nn.cosine_embedding.Options
---@return orrery.Tensor
function orrery.nn.cosine_embedding(a, b, y, options) end

---@class orrery.nn.cosine_similarity.Options
---@field dim? integer default -1
---@field eps? number the least length that is divided by (default 1e-8)

---The cosines of the angles between vectors along a dim, which is gone. Dims of size 1 are repeated: [n, 1, d] and [1, m, d] give [n, m].
---@param a orrery.Tensor
---@param b orrery.Tensor
---@param options? orrery.nn.cosine_similarity.Options
---@return orrery.Tensor
function orrery.nn.cosine_similarity(a, b, options) end

---@class orrery.nn.cross_entropy.Options
---@field weights? orrery.Tensor weight of each position; the mean is over the weights (default nil)
---@field class_weights? orrery.Tensor|number[] weight of each class; a position has its label's (default nil)
---@field ignore? integer positions with this label do not count; the mean of none is NaN (default nil)
---@field label_smoothing? number how much of each label all classes share (default 0)
---@field reduction? string mean, sum or none (default 'mean')

---Cross-entropy of logits [..., classes] and labels: 0-based classes [...], or real numbers [..., classes], the probability of each. The mean is over all positions that count; of labels that are classes, over their weights.
---@param logits orrery.Tensor
---@param labels orrery.Tensor
---@param options? orrery.nn.cross_entropy.Options
---@return orrery.Tensor
function orrery.nn.cross_entropy(logits, labels, options) end

---@class orrery.nn.ctc.Options
---@field blank? integer the class that stands for no label (default 0)
---@field zero_infinity? boolean labels that do not fit into the time have no loss, instead of an infinite one (default false)
---@field reduction? string mean, sum or none (default 'mean')

---Connectionist temporal classification: of logarithms of probabilities [batch, time, classes], as of nn.log_softmax, minus the logarithm of the probability of the labels [batch, n], on any times, with blanks between them. The mean divides each loss by the number of its labels. The recursion over time is written out in the program.
---@param x orrery.Tensor
---@param labels orrery.Tensor classes from 0, none of them the blank; what is behind a sequence's end does not count
---@param lengths orrery.Tensor integers [batch]: how many times of x a sample has
---@param label_lengths orrery.Tensor integers [batch]: how many labels
---@param options? orrery.nn.ctc.Options
---@return orrery.Tensor
function orrery.nn.ctc(x, labels, lengths, label_lengths, options) end

---A layer that in training zeroes elements with this probability and scales the rest.
---@param rate number
---@return orrery.Module
function orrery.nn.dropout(rate) end

---@class orrery.nn.elu.Options
---@field alpha? number default 1

---x where it is positive, else alpha (exp(x) - 1), as a function to put into nn.sequential. Without x, as nn.elu(alpha), it is a layer.
---@param x orrery.Tensor
---@param options? orrery.nn.elu.Options
---@return orrery.Tensor
---@overload fun(options?: orrery.nn.elu.Options|number|string): fun(x: orrery.Tensor): orrery.Tensor
function orrery.nn.elu(x, options) end

---@class orrery.nn.embedding.Options
---@field init? orrery.Initial how the table begins (default nn.init.normal(0.02))
---@field dtype? orrery.DType default 'f32'

---Rows of a table [count, dim] by 0-based ids of any shape.
---@param count integer
---@param dim integer
---@param options? orrery.nn.embedding.Options
---@return orrery.Module
function orrery.nn.embedding(count, dim, options) end

---@class orrery.nn.embedding_bag.Options
---@field mode? string mean, sum or max (default 'mean')
---@field padding? integer an id that does not count; a bag of nothing else gives zeros (default nil)
---@field init? orrery.Initial how the table begins (default nn.init.normal(1))
---@field dtype? orrery.DType default 'f32'

---Of ids [batch, n], the mean, sum or maximum of their rows of a table [count, dim]: [batch, dim].
---@param count integer
---@param dim integer
---@param options? orrery.nn.embedding_bag.Options
---@return orrery.Module
function orrery.nn.embedding_bag(count, dim, options) end

---The model as run:eval computes it, also in a training step: without dropout, by running statistics that stay. For teachers and other networks that a loss only reads; nn.freeze alone does not change what they compute.
---@param model orrery.Module|fun(...):...
---@return fun(...):...
function orrery.nn.evaluated(model) end

---Each sample's elements as one row, [batch, -1]; a function to put into nn.sequential. Without x, as nn.flatten(), it is a layer.
---@param x orrery.Tensor
---@return orrery.Tensor
---@overload fun(): fun(x: orrery.Tensor): orrery.Tensor
function orrery.nn.flatten(x) end

---@class orrery.nn.fold.Options
---@field stride? integer|integer[] default 1
---@field padding? integer|integer[] what windows had beyond each side (default 0)
---@field dilation? integer|integer[] default 1

---Columns as nn.unfold makes them, [batch, channels * size..., windows], in their places of [batch, channels, lengths...]: what windows share is added up. Tensor:fold is another one, which takes the windows of Tensor:windows.
---@param lengths integer|integer[] of the result; of one number there are two dims, as images have
---@param size integer|integer[] of the window in each dim
---@param options? orrery.nn.fold.Options
---@return orrery.Module
function orrery.nn.fold(lengths, size, options) end

---Excludes all parameters below from training, or includes them again; returns the model.
---@param model orrery.Module|table
---@param frozen? boolean
---@return orrery.Module|table
function orrery.nn.freeze(model, frozen) end

---@class orrery.nn.gelu.Options
---@field approximate? string 'none': as it is defined, which is nn.gelu_exact and PyTorch's default (default 'tanh')

---GELU in its tanh form, as a function to put into nn.sequential. Without x, as nn.gelu(approximate), it is a layer.
---@param x orrery.Tensor
---@param options? orrery.nn.gelu.Options
---@return orrery.Tensor
---@overload fun(options?: orrery.nn.gelu.Options|number|string): fun(x: orrery.Tensor): orrery.Tensor
function orrery.nn.gelu(x, options) end

---GELU as it is defined, x times the normal distribution function of x: that of BERT. nn.gelu is its tanh form. Without x, as nn.gelu_exact(), it is a layer.
---@param x orrery.Tensor
---@return orrery.Tensor
---@overload fun(): fun(x: orrery.Tensor): orrery.Tensor
function orrery.nn.gelu_exact(x) end

---The first half of a dim times the sigmoid of the second, as a function to put into nn.sequential. Without x, as nn.glu(dim), it is a layer.
---@param x orrery.Tensor
---@param dim? integer
---@return orrery.Tensor
---@overload fun(dim?: integer): fun(x: orrery.Tensor): orrery.Tensor
function orrery.nn.glu(x, dim) end

---@class orrery.nn.groupnorm.Options
---@field eps? number default 1e-5
---@field affine? boolean whether there are a weight and a bias (default true)
---@field dtype? orrery.DType default 'f32'

---Each group of channels of a sample [channels, dims...] with mean 0 and variance 1, each channel scaled and shifted.
---@param groups integer
---@param channels integer
---@param options? orrery.nn.groupnorm.Options
---@return orrery.Module
function orrery.nn.groupnorm(groups, channels, options) end

---@class orrery.nn.gru.Options
---@field layers? integer default 1
---@field bias? boolean default true
---@field dropout? number between layers, in training (default 0)
---@field bidirectional? boolean default false
---@field dtype? orrery.DType default 'f32'

---Gated recurrent units over the time of x [batch, time, inputs]. Called with x and, to go on where another batch ended, its last state; gives [batch, time, hidden] (2 * hidden in both directions) and the last state [batch, layers * directions, hidden]. Called with a table of `lengths`, integers [batch], behind x or the state, results behind the end of a sequence are zeros, and its last state is that of its last time, as of PyTorch's packed sequences. Parameters are named and laid out as PyTorch's (weight_ih_l0, bias_hh_l1_reverse).
---@param inputs integer
---@param hidden integer
---@param options? orrery.nn.gru.Options
---@return orrery.Module
function orrery.nn.gru(inputs, hidden, options) end

---@class orrery.nn.gru_cell.Options
---@field bias? boolean default true
---@field dtype? orrery.DType default 'f32'

---One time of nn.gru, for loops of your own and orrery.scan. Called with x [batch, inputs] and the last state, if there is one, it gives h [batch, hidden], which is the next state, twice. Parameters are named as PyTorch's.
---@param inputs integer
---@param hidden integer
---@param options? orrery.nn.gru_cell.Options
---@return orrery.Module
function orrery.nn.gru_cell(inputs, hidden, options) end

---(x + 3) / 6 between -3 and 3, 0 below and 1 above, as a function to put into nn.sequential. Without x, as nn.hardsigmoid(), it is a layer.
---@param x orrery.Tensor
---@return orrery.Tensor
---@overload fun(): fun(x: orrery.Tensor): orrery.Tensor
function orrery.nn.hardsigmoid(x) end

---x (x + 3) / 6 between -3 and 3, 0 below and x above, as a function to put into nn.sequential. Without x, as nn.hardswish(), it is a layer.
---@param x orrery.Tensor
---@return orrery.Tensor
---@overload fun(): fun(x: orrery.Tensor): orrery.Tensor
function orrery.nn.hardswish(x) end

---@class orrery.nn.huber.Options
---@field delta? number default 1
---@field reduction? string mean, sum or none (default 'mean')

---Mean of d^2 / 2 of absolute differences d up to delta, and of delta (d - delta / 2) of larger ones.
---@param x orrery.Tensor
---@param y orrery.Tensor|number of the same shape
---@param options? orrery.nn.huber.Options
---@return orrery.Tensor
function orrery.nn.huber(x, y, options) end

---x as it is, as a function to put into nn.sequential. Without x, as nn.identity(), it is a layer.
---@param x orrery.Tensor
---@return orrery.Tensor
---@overload fun(): fun(x: orrery.Tensor): orrery.Tensor
function orrery.nn.identity(x) end

---@class orrery.nn.instancenorm.Options
---@field eps? number default 1e-5
---@field affine? boolean whether there are a weight and a bias (default false)
---@field dtype? orrery.DType default 'f32'

---Each channel of a sample [channels, dims...] with mean 0 and variance 1: nn.groupnorm of groups of one.
---@param channels integer
---@param options? orrery.nn.instancenorm.Options
---@return orrery.Module
function orrery.nn.instancenorm(channels, options) end

---@class orrery.nn.kl_div.Options
---@field log_target? boolean whether y are logarithms, too (default false)
---@field reduction? string mean, sum, none, or batchmean: the sum of each sample, of which the mean (default 'mean')

---Kullback-Leibler divergence of logarithms of probabilities x from probabilities y of the same shape: the mean of y (log(y) - x) over all elements. As a divergence of rows it is "batchmean".
---@param x orrery.Tensor
---@param y orrery.Tensor
---@param options? orrery.nn.kl_div.Options
---@return orrery.Tensor
function orrery.nn.kl_div(x, y, options) end

---@class orrery.nn.l1.Options
---@field reduction? string mean, sum or none (default 'mean')

---Mean of absolute differences.
---@param x orrery.Tensor
---@param y orrery.Tensor|number of the same shape
---@param options? orrery.nn.l1.Options
---@return orrery.Tensor
function orrery.nn.l1(x, y, options) end

---@class orrery.nn.layernorm.Options
---@field eps? number default 1e-5
---@field affine? boolean whether there are a weight and a bias (default true)
---@field bias? boolean whether there is a bias beside the weight (default true)
---@field dtype? orrery.DType default 'f32'

---The last dim with mean 0 and variance 1, scaled and shifted.
---@param dim integer
---@param options? orrery.nn.layernorm.Options
---@return orrery.Module
function orrery.nn.layernorm(dim, options) end

---@class orrery.nn.leaky_relu.Options
---@field slope? number default 0.01

---x where it is positive, else slope x, as a function to put into nn.sequential. Without x, as nn.leaky_relu(slope), it is a layer.
---@param x orrery.Tensor
---@param options? orrery.nn.leaky_relu.Options
---@return orrery.Tensor
---@overload fun(options?: orrery.nn.leaky_relu.Options|number|string): fun(x: orrery.Tensor): orrery.Tensor
function orrery.nn.leaky_relu(x, options) end

---@class orrery.nn.linear.Options
---@field bias? boolean default true
---@field tie? orrery.State the weight to use, of another layer (default false)
---@field init? orrery.Initial how the weight begins (default nn.init.fan_in)
---@field bias_init? orrery.Initial how the bias begins (default nn.init.uniform(-1/sqrt(inputs),1/sqrt(inputs)))
---@field dtype? orrery.DType default 'f32'

---x W^T + b, weights [out, in].
---@param inputs integer
---@param outputs integer|integer[] of a list the columns come back as several tensors, of one product
---@param options? orrery.nn.linear.Options
---@return orrery.Module
function orrery.nn.linear(inputs, outputs, options) end

---@class orrery.nn.log_softmax.Options
---@field dim? integer default -1

---The logarithm of the softmax of a dim, as a function to put into nn.sequential. Without x, as nn.log_softmax(dim), it is a layer.
---@param x orrery.Tensor
---@param options? orrery.nn.log_softmax.Options
---@return orrery.Tensor
---@overload fun(options?: orrery.nn.log_softmax.Options|number|string): fun(x: orrery.Tensor): orrery.Tensor
function orrery.nn.log_softmax(x, options) end

---log(1 / (1 + exp(-x))), as a function to put into nn.sequential. Without x, as nn.logsigmoid(), it is a layer.
---@param x orrery.Tensor
---@return orrery.Tensor
---@overload fun(): fun(x: orrery.Tensor): orrery.Tensor
function orrery.nn.logsigmoid(x) end

---@class orrery.nn.lstm.Options
---@field layers? integer default 1
---@field bias? boolean default true
---@field dropout? number between layers, in training (default 0)
---@field bidirectional? boolean default false
---@field dtype? orrery.DType default 'f32'

---Long short-term memory over the time of x [batch, time, inputs]. Called with x and, to go on where another batch ended, its last state; gives [batch, time, hidden] (2 * hidden in both directions) and the last state {h =, c =}, each [batch, layers * directions, hidden]. Called with a table of `lengths`, integers [batch], behind x or the state, results behind the end of a sequence are zeros, and its last state is that of its last time, as of PyTorch's packed sequences. Parameters are named and laid out as PyTorch's (weight_ih_l0, bias_hh_l1_reverse).
---@param inputs integer
---@param hidden integer
---@param options? orrery.nn.lstm.Options
---@return orrery.Module
function orrery.nn.lstm(inputs, hidden, options) end

---@class orrery.nn.lstm_cell.Options
---@field bias? boolean default true
---@field dtype? orrery.DType default 'f32'

---One time of nn.lstm, for loops of your own and orrery.scan. Called with x [batch, inputs] and the last state, if there is one, it gives h [batch, hidden] and the next state {h =, c =}. Parameters are named as PyTorch's.
---@param inputs integer
---@param hidden integer
---@param options? orrery.nn.lstm_cell.Options
---@return orrery.Module
function orrery.nn.lstm_cell(inputs, hidden, options) end

---As nn.max_pool2d, over [batch, channels, length].
---@param size integer|integer[]
---@param options? table
---@return orrery.Module
function orrery.nn.max_pool1d(size, options) end

---@class orrery.nn.max_pool2d.Options
---@field stride? integer|integer[] default size
---@field padding? integer|integer[] of what is smaller than any number, on both sides (default 0)
---@field dilation? integer|integer[] default 1
---@field ceil_mode? boolean whether a last window may begin within the dim and its padding and reach beyond (default false)

---The largest of each window of [batch, channels, height, width]. Of several the first gets the gradient.
---@param size integer|integer[] of the window, for all dims or for each, as all numbers of the options
---@param options? orrery.nn.max_pool2d.Options
---@return orrery.Module
function orrery.nn.max_pool2d(size, options) end

---As nn.max_pool2d, over [batch, channels, depth, height, width].
---@param size integer|integer[]
---@param options? table
---@return orrery.Module
function orrery.nn.max_pool3d(size, options) end

---x tanh(log(1 + exp(x))), as a function to put into nn.sequential. Without x, as nn.mish(), it is a layer.
---@param x orrery.Tensor
---@return orrery.Tensor
---@overload fun(): fun(x: orrery.Tensor): orrery.Tensor
function orrery.nn.mish(x) end

---Makes a constructor of modules. `build(m, ...)` assigns parts to `m` and returns the forward function, which closes over `m`. What is not a part of `m` is not trained.
---@param name string
---@param build fun(m:orrery.Module,...):function
---@return fun(...):orrery.Module
function orrery.nn.module(name, build) end

---@class orrery.nn.mse.Options
---@field reduction? string mean, sum or none (default 'mean')

---Mean of squared differences of tensors of one shape, or from a number.
---@param x orrery.Tensor
---@param y orrery.Tensor|number
---@param options? orrery.nn.mse.Options
---@return orrery.Tensor
function orrery.nn.mse(x, y, options) end

---@class orrery.nn.multihead_attention.Options
---@field bias? boolean default true
---@field dropout? number in training, of the weights of keys (default 0)
---@field dtype? orrery.DType default 'f32'

---Attention with projections of its own. Called with x [batch, time, dim] and perhaps with what is attended to, keys and values, or one for both; and at last perhaps with a table of `causal`, `mask`, `bias` and `window` as orrery.attention takes them: a mask is true where a key is seen. Parameters are named and laid out as PyTorch's (in_proj_weight, out_proj.weight).
---@param dim integer
---@param heads integer a divisor of dim
---@param options? orrery.nn.multihead_attention.Options
---@return orrery.Module
function orrery.nn.multihead_attention(dim, heads, options) end

---@class orrery.nn.nll.Options
---@field weights? orrery.Tensor weight of each position; the mean is over the weights (default nil)
---@field class_weights? orrery.Tensor|number[] weight of each class; a position has its label's (default nil)
---@field ignore? integer positions with this label do not count (default nil)
---@field reduction? string mean, sum or none (default 'mean')

---Negative log-likelihood: of logarithms of probabilities [..., classes], as of nn.log_softmax, the mean of -x at the labels [...].
---@param x orrery.Tensor
---@param labels orrery.Tensor 0-based classes
---@param options? orrery.nn.nll.Options
---@return orrery.Tensor
function orrery.nn.nll(x, labels, options) end

---@class orrery.nn.normalize.Options
---@field dim? integer default -1
---@field p? number the norm that lengths are; math.huge: the largest element (default 2)
---@field eps? number the least length that is divided by (default 1e-12)

---The vectors along a dim divided by their lengths, so that these are 1; as a function to put into nn.sequential. Without x, as nn.normalize(dim), it is a layer.
---@param x orrery.Tensor
---@param options? orrery.nn.normalize.Options
---@return orrery.Tensor
---@overload fun(options?: orrery.nn.normalize.Options|number|string): fun(x: orrery.Tensor): orrery.Tensor
function orrery.nn.normalize(x, options) end

---@class orrery.nn.parameter.Options
---@field init? orrery.Initial default nn.init.zeros
---@field dtype? orrery.DType default 'f32'

---A trained tensor for modules of your own.
---@param dims integer|integer[]
---@param options? orrery.nn.parameter.Options
---@return orrery.State
function orrery.nn.parameter(dims, options) end

---[batch, channels * factor^2, height, width] as [batch, channels, height * factor, width * factor]: neighbouring channels become neighbouring places.
---@param factor integer
---@return orrery.Module
function orrery.nn.pixel_shuffle(factor) end

---@class orrery.nn.prelu.Options
---@field init? orrery.Initial how the weight begins (default nn.init.constant(0.25))
---@field dtype? orrery.DType default 'f32'

---x where it is positive, else x times a trained weight: one for all, or one for each channel of [batch, channels, dims...].
---@param count? integer 1, or how many channels
---@param options? orrery.nn.prelu.Options
---@return orrery.Module
function orrery.nn.prelu(count, options) end

---@class orrery.nn.relative_bias.Options
---@field buckets? integer default 32
---@field distance? integer where the last bucket begins to hold all that is further (default 128)
---@field causal? boolean all buckets are for keys before the query (default false)
---@field init? orrery.Initial how the table [buckets, heads] begins (default nn.init.normal(0.02))

---T5's relative positions: what each head adds to the score of a key, by how far it is from the query. Distances fall into buckets, near ones of one place each, far ones ever wider. Called with the numbers of queries and keys it gives the `bias` of nn.attention, [1, heads, queries, keys]; layers share one.
---@param heads integer
---@param options? orrery.nn.relative_bias.Options
---@return orrery.Module
function orrery.nn.relative_bias(heads, options) end

---max(x, 0), as a function to put into nn.sequential. Without x, as nn.relu(), it is a layer.
---@param x orrery.Tensor
---@return orrery.Tensor
---@overload fun(): fun(x: orrery.Tensor): orrery.Tensor
function orrery.nn.relu(x) end

---@class orrery.nn.rmsnorm.Options
---@field eps? number default 1e-5
---@field affine? boolean whether there is a weight (default true)
---@field dtype? orrery.DType default 'f32'

---The last dim over its root mean square, scaled.
---@param dim integer
---@param options? orrery.nn.rmsnorm.Options
---@return orrery.Module
function orrery.nn.rmsnorm(dim, options) end

---@class orrery.nn.rnn.Options
---@field act? fun(x):orrery.Tensor default nn.tanh
---@field layers? integer default 1
---@field bias? boolean default true
---@field dropout? number between layers, in training (default 0)
---@field bidirectional? boolean default false
---@field dtype? orrery.DType default 'f32'

---A plain recurrence act(W x + U h + b) over the time of x [batch, time, inputs]. Called with x and, to go on where another batch ended, its last state; gives [batch, time, hidden] (2 * hidden in both directions) and the last state [batch, layers * directions, hidden]. Called with a table of `lengths`, integers [batch], behind x or the state, results behind the end of a sequence are zeros, and its last state is that of its last time, as of PyTorch's packed sequences. Parameters are named and laid out as PyTorch's (weight_ih_l0, bias_hh_l1_reverse).
---@param inputs integer
---@param hidden integer
---@param options? orrery.nn.rnn.Options
---@return orrery.Module
function orrery.nn.rnn(inputs, hidden, options) end

---@class orrery.nn.rnn_cell.Options
---@field act? fun(x):orrery.Tensor default nn.tanh
---@field bias? boolean default true
---@field dtype? orrery.DType default 'f32'

---One time of nn.rnn, for loops of your own and orrery.scan. Called with x [batch, inputs] and the last state, if there is one, it gives h [batch, hidden], which is the next state, twice. Parameters are named as PyTorch's.
---@param inputs integer
---@param hidden integer
---@param options? orrery.nn.rnn_cell.Options
---@return orrery.Module
function orrery.nn.rnn_cell(inputs, hidden, options) end

---@class orrery.nn.rotary.Options
---@field heads? integer how many heads share the last dim (default 1)
---@field base? number the slowest pair turns once in about 2 * pi * base places (default 10000)
---@field offset? orrery.Tensor|number the 0-based place of the first of `time` (default 0)
---@field interleaved? boolean pairs are neighbours, not elements of a head's first and second half (default false)

---Rotary positions: turns each pair of elements of every head of queries or keys [batch, time, heads * d] by an angle that grows with the place, so that scores depend on how far a key is from a query. Without x, as nn.rotary(heads), it is a layer.
---@param x orrery.Tensor
---@param options? orrery.nn.rotary.Options
---@return orrery.Tensor
---@overload fun(options?: orrery.nn.rotary.Options|number|string): fun(x: orrery.Tensor): orrery.Tensor
function orrery.nn.rotary(x, options) end

---ELU with the two factors that keep means at 0 and variances at 1 from layer to layer, as a function to put into nn.sequential. Without x, as nn.selu(), it is a layer.
---@param x orrery.Tensor
---@return orrery.Tensor
---@overload fun(): fun(x: orrery.Tensor): orrery.Tensor
function orrery.nn.selu(x) end

---Each part (a module or a function) on the result of the one before.
---@param parts any[]|integer a list of parts, or how many parts `make` makes
---@param make? fun(i:integer):orrery.Module makes the i-th part
---@return orrery.Module
function orrery.nn.sequential(parts, make) end

---1 / (1 + exp(-x)), as a function to put into nn.sequential. Without x, as nn.sigmoid(), it is a layer.
---@param x orrery.Tensor
---@return orrery.Tensor
---@overload fun(): fun(x: orrery.Tensor): orrery.Tensor
function orrery.nn.sigmoid(x) end

---x * sigmoid(x), as a function to put into nn.sequential. Without x, as nn.silu(), it is a layer.
---@param x orrery.Tensor
---@return orrery.Tensor
---@overload fun(): fun(x: orrery.Tensor): orrery.Tensor
function orrery.nn.silu(x) end

---@class orrery.nn.smooth_l1.Options
---@field beta? number 0: nn.l1 (default 1)
---@field reduction? string mean, sum or none (default 'mean')

---Mean of absolute differences d, less beta / 2, that are d^2 / (2 beta) below beta.
---@param x orrery.Tensor
---@param y orrery.Tensor|number of the same shape
---@param options? orrery.nn.smooth_l1.Options
---@return orrery.Tensor
function orrery.nn.smooth_l1(x, y, options) end

---@class orrery.nn.softmax.Options
---@field dim? integer default -1

---Softmax of a dim, as a function to put into nn.sequential. Without x, as nn.softmax(dim), it is a layer.
---@param x orrery.Tensor
---@param options? orrery.nn.softmax.Options
---@return orrery.Tensor
---@overload fun(options?: orrery.nn.softmax.Options|number|string): fun(x: orrery.Tensor): orrery.Tensor
function orrery.nn.softmax(x, options) end

---@class orrery.nn.softplus.Options
---@field beta? number default 1

---log(1 + exp(beta x)) / beta, as a function to put into nn.sequential. Without x, as nn.softplus(beta), it is a layer.
---@param x orrery.Tensor
---@param options? orrery.nn.softplus.Options
---@return orrery.Tensor
---@overload fun(options?: orrery.nn.softplus.Options|number|string): fun(x: orrery.Tensor): orrery.Tensor
function orrery.nn.softplus(x, options) end

---@class orrery.nn.spectral_norm.Options
---@field part? string the part of the layer (default 'weight')
---@field dim? integer that rows are counted along; 2 for nn.conv_transpose2d (default 1)
---@field iterations? integer of a call in training (default 1)
---@field eps? number the least length that a vector is divided by (default 1e-12)

---A layer whose weight, as a matrix of the rows along a dim, is divided by its largest singular value. That is what a power iteration finds, which goes on with each call in training: its vectors are the buffers u and v. The layer's weight must be its own alone.
---@param layer orrery.Module
---@param options? orrery.nn.spectral_norm.Options
---@return orrery.Module
function orrery.nn.spectral_norm(layer, options) end

---@class orrery.nn.switch.Options
---@field experts? integer default 8
---@field hidden? integer width between an expert's layers; left out, 4 * dim (default nil)
---@field top? integer experts of a place (default 1)
---@field capacity? number|boolean places of an expert, in even shares; false: as many as come (default 1.25)
---@field group? integer places that are routed together, a divisor of the time; left out, all of a sample (default nil)
---@field gated? boolean down(act(gate(x)) * up(x)) instead of down(act(up(x))) (default false)
---@field act? fun(x):orrery.Tensor between an expert's layers; of gated ones nn.silu (default nn.gelu)
---@field shared? integer experts that every place goes to, beside those chosen (default 0)
---@field shared_gate? boolean whether a sigmoid of each place weighs what these make (default false)
---@field score? string of the router's logits, or 'sigmoid' (default 'softmax')
---@field normalize? boolean whether the weights of a place's experts sum up to 1; left out, if these are several (default nil)
---@field scale? number of the weights (default 1)
---@field bias_rate? number|boolean a bias for the choice of each expert, which moves so far in a step as its load is below or above the mean of all; 0 for one that stays (default false)
---@field n_group? integer groups of experts, of which (default 1)
---@field topk_group? integer so many best ones are open to a place (default 1)
---@field balance? number weight of the loss that wants equal loads (default 0.01)
---@field balance_over? string choices of a place that this loss counts: 'first' or 'all' (default 'first')
---@field z? number weight of the loss that keeps the router's logits small (default 0)

---A mixture of experts: each place of [batch, time, dim] goes to the `top` experts, small networks of two layers or gated ones, that a router prefers. An expert takes `capacity` times its even share of a group of neighbouring places; what is over that is dropped, so that the layer adds nothing to it. Without a capacity nothing is dropped, and an expert computes the places that chose it, however many. Returns y and a table: `loss` (add it to the model's), `dropped` (choices that found no room, a sum) and `load` (choices of each expert, a sum). Of the defaults it is a Switch Transformer; docs/strategies/expert.md has Mixtral, Grok, Qwen3 and DeepSeek in a line each.
---@param dim integer
---@param options? orrery.nn.switch.Options
---@return orrery.Module
function orrery.nn.switch(dim, options) end

---Hyperbolic tangent, as a function to put into nn.sequential. Without x, as nn.tanh(), it is a layer.
---@param x orrery.Tensor
---@return orrery.Tensor
---@overload fun(): fun(x: orrery.Tensor): orrery.Tensor
function orrery.nn.tanh(x) end

---@class orrery.nn.transformer_decoder_layer.Options
---@field hidden? integer the width between the two layers of the network (default 2048)
---@field dropout? number in training (default 0.1)
---@field act? fun(x):orrery.Tensor between these layers; PyTorch's "gelu" is nn.gelu_exact (default nn.relu)
---@field eps? number of the norms (default 1e-5)
---@field norm_first? boolean norms before the parts instead of after the sums (default false)
---@field bias? boolean default true
---@field dtype? orrery.DType default 'f32'

---Self-attention, attention to what an encoder made, and a network of two layers, each added to what came in. Called with x [batch, time, dim], what the encoder made [batch, length, dim], and perhaps a table of `causal`, `mask`, `bias` and `window` of the self-attention, and another one of the attention to the encoder's. Parameters are named and laid out as PyTorch's.
---@param dim integer
---@param heads integer a divisor of dim
---@param options? orrery.nn.transformer_decoder_layer.Options
---@return orrery.Module
function orrery.nn.transformer_decoder_layer(dim, heads, options) end

---@class orrery.nn.transformer_encoder_layer.Options
---@field hidden? integer the width between the two layers of the network (default 2048)
---@field dropout? number in training (default 0.1)
---@field act? fun(x):orrery.Tensor between these layers; PyTorch's "gelu" is nn.gelu_exact (default nn.relu)
---@field eps? number of the norms (default 1e-5)
---@field norm_first? boolean norms before the parts instead of after the sums (default false)
---@field bias? boolean default true
---@field dtype? orrery.DType default 'f32'

---Self-attention and a network of two layers, each added to what came in. Called with x [batch, time, dim] and perhaps a table of `causal`, `mask`, `bias` and `window` as orrery.attention takes them. Parameters are named and laid out as PyTorch's.
---@param dim integer
---@param heads integer a divisor of dim
---@param options? orrery.nn.transformer_encoder_layer.Options
---@return orrery.Module
function orrery.nn.transformer_encoder_layer(dim, heads, options) end

---@class orrery.nn.triplet.Options
---@field margin? number default 1
---@field p? number the norm that distances are; math.huge: the largest element (default 2)
---@field eps? number added to each difference (default 1e-6)
---@field swap? boolean the distance between positive and negative counts where that is the smaller one (default false)
---@field reduction? string mean, sum or none (default 'mean')

---Of rows [..., dim] the mean of max(0, margin + distance to the positive - distance to the negative).
---@param anchor orrery.Tensor
---@param positive orrery.Tensor
---@param negative orrery.Tensor
---@param options? orrery.nn.triplet.Options
---@return orrery.Tensor
function orrery.nn.triplet(anchor, positive, negative, options) end

---@class orrery.nn.unfold.Options
---@field stride? integer|integer[] default 1
---@field padding? integer|integer[] zeros on both sides (default 0)
---@field dilation? integer|integer[] default 1

---All windows of [batch, channels, dims...] as columns [batch, channels * size..., windows], in PyTorch's order; nn.fold puts them back. Tensor:windows is the view that it is made of.
---@param size integer|integer[] of the window in each dim; of one number there are two dims, as images have
---@param options? orrery.nn.unfold.Options
---@return orrery.Module
function orrery.nn.unfold(size, options) end

---@class orrery.nn.upsample.Options
---@field mode? string nearest; or linear, bilinear, trilinear, of one, two, three dims (default 'nearest')

---[batch, channels, dims...] with more places in one to three dims: each takes the nearest one there was, or what lies between neighbours, where places are the middles of their squares (PyTorch's align_corners = false).
---@param factor integer|integer[] for all dims or for each
---@param options? orrery.nn.upsample.Options
---@return orrery.Module
function orrery.nn.upsample(factor, options) end

---@class orrery.nn.weight_norm.Options
---@field part? string the part of the layer (default 'weight')
---@field dim? integer that lengths are counted along; 2 for nn.conv_transpose2d (default 1)

---A layer whose weight is made of its length and its direction, weight_g v / |v| with v = weight_v, which are trained apart: lengths are of the rows along a dim. It begins with the weight that the layer has, which must be its own alone.
---@param layer orrery.Module
---@param options? orrery.nn.weight_norm.Options
---@return orrery.Module
function orrery.nn.weight_norm(layer, options) end

---@class orrery.nn.init
orrery.nn.init = {}

---Every element the same.
---@param value number
---@return orrery.Initial
function orrery.nn.init.constant(value) end

---Uniform in [low, high).
---@param low number
---@param high number
---@return orrery.Initial
function orrery.nn.init.uniform(low, high) end

---Normally distributed.
---@param deviation number
---@param mean? number
---@return orrery.Initial
function orrery.nn.init.normal(deviation, mean) end

---Uniform within 1/sqrt(inputs), for weights [out, in] and [out, in, size...]. Layers take the function itself: {init = nn.init.fan_in}.
---@param dims integer[]
---@return orrery.Initial
function orrery.nn.init.fan_in(dims) end

---Glorot and Bengio's uniform, for weights [out, in] and [out, in, size...]. Layers take the function itself: {init = nn.init.xavier}.
---@param dims integer[]
---@return orrery.Initial
function orrery.nn.init.xavier(dims) end

---He's normal for layers before a relu, for weights [out, in] and [out, in, size...]. Layers take the function itself: {init = nn.init.kaiming}.
---@param dims integer[]
---@return orrery.Initial
function orrery.nn.init.kaiming(dims) end

---The initialiser for these dims, of one or of a function that makes one.
---@param given orrery.Initial|function
---@param dims integer|integer[]
---@return orrery.Initial
function orrery.nn.init.resolve(given, dims) end

---@class orrery.optim
orrery.optim = {}

---@class orrery.optim.adadelta.Options
---@field lr? number|orrery.Schedule the rate, or a function of the step (default 1)
---@field rho? number|orrery.Schedule how much of both means stays with each step (default 0.9)
---@field eps? number|orrery.Schedule default 1e-6
---@field decay? number|orrery.Schedule default 0
---@field groups? table {{match =, frozen =, clip_norm =, clip_value =, optimizer = or any option =}, ...}: the first that matches counts; match is a pattern of paths, a function of the parameter or a list of them (default {})

---Adadelta (Zeiler, 2012): steps of the size that past steps had, by a running mean of squared gradients.
---@param options? orrery.optim.adadelta.Options
---@return orrery.Optimizer
function orrery.optim.adadelta(options) end

---@class orrery.optim.adafactor.Options
---@field lr? number|orrery.Schedule the largest step, as a part of the parameter's size; 1 / sqrt(n) with the n-th update (default 0.01)
---@field b2_decay? number|orrery.Schedule the n-th update has the weight n^b2_decay in the means (default -0.8)
---@field eps? number|orrery.Schedule the least size that a parameter counts as (default 1e-3)
---@field clip? number|orrery.Schedule the largest root mean square of a direction (default 1)
---@field decay? number|orrery.Schedule of the weights themselves (default 0)
---@field groups? table {{match =, frozen =, clip_norm =, clip_value =, optimizer = or any option =}, ...}: the first that matches counts; match is a pattern of paths, a function of the parameter or a list of them (default {})

---Adafactor (Shazeer and Stern, 2018): of a matrix it keeps means of squared gradients of rows and columns only. Steps are parts of the size of the parameter. Of more than two dims the last two are matrices.
---@param options? orrery.optim.adafactor.Options
---@return orrery.Optimizer
function orrery.optim.adafactor(options) end

---@class orrery.optim.adagrad.Options
---@field lr? number|orrery.Schedule the rate, or a function of the step (default 0.01)
---@field decay? number|orrery.Schedule default 0
---@field eps? number|orrery.Schedule default 1e-10
---@field groups? table {{match =, frozen =, clip_norm =, clip_value =, optimizer = or any option =}, ...}: the first that matches counts; match is a pattern of paths, a function of the parameter or a list of them (default {})

---Adagrad (Duchi, Hazan and Singer, 2011): each weight's own rate falls with the squares of all its gradients so far.
---@param options? orrery.optim.adagrad.Options
---@return orrery.Optimizer
function orrery.optim.adagrad(options) end

---@class orrery.optim.adam.Options
---@field lr? number|orrery.Schedule the rate, or a function of the step (default 1e-3)
---@field b1? number|orrery.Schedule default 0.9
---@field b2? number|orrery.Schedule default 0.999
---@field eps? number|orrery.Schedule default 1e-8
---@field decay? number|orrery.Schedule default 0
---@field groups? table {{match =, frozen =, clip_norm =, clip_value =, optimizer = or any option =}, ...}: the first that matches counts; match is a pattern of paths, a function of the parameter or a list of them (default {})

---Adam (Kingma and Ba, 2015); decay is added to the gradient.
---@param options? orrery.optim.adam.Options
---@return orrery.Optimizer
function orrery.optim.adam(options) end

---@class orrery.optim.adamax.Options
---@field lr? number|orrery.Schedule the rate, or a function of the step (default 2e-3)
---@field b1? number|orrery.Schedule default 0.9
---@field b2? number|orrery.Schedule how much of the largest gradient stays with each step (default 0.999)
---@field eps? number|orrery.Schedule default 1e-8
---@field decay? number|orrery.Schedule default 0
---@field groups? table {{match =, frozen =, clip_norm =, clip_value =, optimizer = or any option =}, ...}: the first that matches counts; match is a pattern of paths, a function of the parameter or a list of them (default {})

---AdaMax (Kingma and Ba, 2015): Adam that divides by the largest gradient, which fades, instead of by a mean of squares.
---@param options? orrery.optim.adamax.Options
---@return orrery.Optimizer
function orrery.optim.adamax(options) end

---@class orrery.optim.adamw.Options
---@field lr? number|orrery.Schedule the rate, or a function of the step (default 1e-3)
---@field b1? number|orrery.Schedule default 0.9
---@field b2? number|orrery.Schedule default 0.999
---@field eps? number|orrery.Schedule default 1e-8
---@field decay? number|orrery.Schedule default 0.01
---@field groups? table {{match =, frozen =, clip_norm =, clip_value =, optimizer = or any option =}, ...}: the first that matches counts; match is a pattern of paths, a function of the parameter or a list of them (default {})

---AdamW (Loshchilov and Hutter, 2019): Adam with decay applied to the weights themselves.
---@param options? orrery.optim.adamw.Options
---@return orrery.Optimizer
function orrery.optim.adamw(options) end

---The product of schedules that go on at the same time, of which all but one have a peak of 1. For one after another there is optim.sequential.
---@param schedules orrery.Schedule[]
---@return orrery.Schedule
function orrery.optim.chained(schedules) end

---@class orrery.optim.constant.Options
---@field peak? number the rate after the warm-up
---@field warmup? integer steps in which the rate grows from 0 (default 0)
---@field steps? integer has no effect here (default math.huge)

---A linear warm-up, then always the peak.
---@param options orrery.optim.constant.Options
---@return orrery.Schedule
function orrery.optim.constant(options) end

---@class orrery.optim.cosine.Options
---@field peak? number the rate after the warm-up
---@field warmup? integer steps in which the rate grows from 0 (default 0)
---@field steps? integer how many there are, the warm-up's among them
---@field floor? number the rate after the last step (default 0)

---A warm-up, then half a cosine down to the floor.
---@param options orrery.optim.cosine.Options
---@return orrery.Schedule
function orrery.optim.cosine(options) end

---@class orrery.optim.cosine_restarts.Options
---@field peak? number the rate after the warm-up
---@field warmup? integer steps in which the rate grows from 0 (default 0)
---@field period? integer steps from the peak until the rate is there again
---@field factor? integer from one period to the next (default 1)
---@field floor? number where a period would end with its next step (default 0)

---A warm-up, then half a cosine from the peak towards the floor, over and over again.
---@param options orrery.optim.cosine_restarts.Options
---@return orrery.Schedule
function orrery.optim.cosine_restarts(options) end

---@class orrery.optim.define.Options
---@field options? table {name = default}; lr, and what is given as a function of the step, reaches the update as a run-time scalar, of which every rank takes rank 0's; the others as numbers (default {})
---@field states? string[] names of tensors like the parameter, zero at first (default {})
---@field shapes? table {name = function(dims)}: the dims of a state that is not like a parameter of these dims; nil: that parameter has none. A single number is f32 beside 16 bits (default {})
---@field scalars? fun(step,o):table further numbers for a step of the run, from options that are numbers here (default false)
---@field counted? boolean o.count is how many updates the parameter has taken, with this one: an f32 number (exact to 2^24, where it stays) that is kept with its states. It is less than the run's step after steps in which the parameter was frozen or which a loss scale took back (default false)
---@field update? fun(p,g,s,o) returns the new p and a table of new states; o.path is the parameter's, and o.held_by["linear"] is true if it is a part of a module of that kind; required

---An optimizer in Lua. Its update is traced once for each parameter and becomes part of the step's program.
---@param name string
---@param definition orrery.optim.define.Options
---@return fun(options:table):orrery.Optimizer
function orrery.optim.define(name, definition) end

---@class orrery.optim.exponential.Options
---@field peak? number the rate after the warm-up
---@field warmup? integer steps in which the rate grows from 0 (default 0)
---@field gamma? number

---A warm-up, then one step with the peak, and each further one with gamma times the rate before.
---@param options orrery.optim.exponential.Options
---@return orrery.Schedule
function orrery.optim.exponential(options) end

---@class orrery.optim.lamb.Options
---@field lr? number|orrery.Schedule the rate, or a function of the step (default 1e-3)
---@field b1? number|orrery.Schedule default 0.9
---@field b2? number|orrery.Schedule default 0.999
---@field eps? number|orrery.Schedule default 1e-6
---@field decay? number|orrery.Schedule default 0.01
---@field groups? table {{match =, frozen =, clip_norm =, clip_value =, optimizer = or any option =}, ...}: the first that matches counts; match is a pattern of paths, a function of the parameter or a list of them (default {})

---LAMB (You et al., 2020), for large batches: AdamW whose step of each tensor is as long as the tensor, times the rate.
---@param options? orrery.optim.lamb.Options
---@return orrery.Optimizer
function orrery.optim.lamb(options) end

---@class orrery.optim.lars.Options
---@field lr? number|orrery.Schedule the rate, or a function of the step (default 0.1)
---@field momentum? number|orrery.Schedule default 0.9
---@field trust? number|orrery.Schedule default 0.001
---@field decay? number|orrery.Schedule default 0
---@field groups? table {{match =, frozen =, clip_norm =, clip_value =, optimizer = or any option =}, ...}: the first that matches counts; match is a pattern of paths, a function of the parameter or a list of them (default {})

---LARS (You et al., 2017), for large batches: momentum whose gradient of each tensor is as long as the tensor, times `trust`.
---@param options? orrery.optim.lars.Options
---@return orrery.Optimizer
function orrery.optim.lars(options) end

---@class orrery.optim.lbfgs.Options
---@field params? orrery.Module|table the model whose parameters are trained; required
---@field lr? number the length of a step, or the first one that a line search tries (default 1)
---@field max_iter? integer iterations of a step (default 20)
---@field max_eval? integer evaluations of the loss in a step after which it ends; 0: 5/4 of max_iter (default 0)
---@field tolerance_grad? number a step ends where no element of the gradient is larger (default 1e-7)
---@field tolerance_change? number and where neither loss nor parameters change by more (default 1e-9)
---@field history? integer pairs of changes that directions are made of (default 100)
---@field line_search? string or strong_wolfe: the length of a step is looked for (default 'none')
---@field microbatches? integer as of orrery.compile (default 0)

---L-BFGS (Liu and Nocedal, 1989), which computes a loss several times for each step and therefore is a loop of its own: local lbfgs = optim.lbfgs(loss, { params = model }), and lbfgs:step(batch) for each batch, which is best all of the data. PyTorch's steps, on any number of ranks.
---@param loss orrery.Module|fun(batch:table):orrery.Tensor as orrery.compile takes it, with one result
---@param options orrery.optim.lbfgs.Options
---@return orrery.Lbfgs
function orrery.optim.lbfgs(loss, options) end

---@class orrery.optim.linear.Options
---@field peak? number the rate after the warm-up
---@field warmup? integer steps in which the rate grows from 0 (default 0)
---@field steps? integer how many there are, the warm-up's among them
---@field floor? number the rate after the last step (default 0)

---A warm-up, then straight down to the floor.
---@param options orrery.optim.linear.Options
---@return orrery.Schedule
function orrery.optim.linear(options) end

---@class orrery.optim.lion.Options
---@field lr? number|orrery.Schedule the rate, or a function of the step (default 1e-4)
---@field b1? number|orrery.Schedule how much of the momentum the direction takes (default 0.9)
---@field b2? number|orrery.Schedule how much of the momentum stays (default 0.99)
---@field decay? number|orrery.Schedule of the weights themselves (default 0)
---@field groups? table {{match =, frozen =, clip_norm =, clip_value =, optimizer = or any option =}, ...}: the first that matches counts; match is a pattern of paths, a function of the parameter or a list of them (default {})

---Lion (Chen et al., 2023): steps of one size, by the sign of momentum; half of Adam's states.
---@param options? orrery.optim.lion.Options
---@return orrery.Optimizer
function orrery.optim.lion(options) end

---@class orrery.optim.momentum.Options
---@field lr? number|orrery.Schedule the rate, or a function of the step (default 0.01)
---@field momentum? number|orrery.Schedule default 0.9
---@field decay? number|orrery.Schedule default 0
---@field nesterov? boolean default false
---@field dampening? number|orrery.Schedule what later gradients lack in v; not with nesterov (default 0)
---@field groups? table {{match =, frozen =, clip_norm =, clip_value =, optimizer = or any option =}, ...}: the first that matches counts; match is a pattern of paths, a function of the parameter or a list of them (default {})

---Gradient descent with momentum: v = momentum * v + (1 - dampening) * g, in the first update g; p - lr * v.
---@param options? orrery.optim.momentum.Options
---@return orrery.Optimizer
function orrery.optim.momentum(options) end

---@class orrery.optim.multistep.Options
---@field peak? number the rate after the warm-up
---@field warmup? integer steps in which the rate grows from 0 (default 0)
---@field at? integer[] after so many steps, counted from the warm-up's end, ascending
---@field gamma? number default 0.1

---A warm-up, then the peak, times gamma after each of some numbers of steps.
---@param options orrery.optim.multistep.Options
---@return orrery.Schedule
function orrery.optim.multistep(options) end

---@class orrery.optim.muon.Options
---@field lr? number|orrery.Schedule the rate, or a function of the step (default 1e-3)
---@field momentum? number|orrery.Schedule default 0.95
---@field nesterov? boolean default true
---@field decay? number|orrery.Schedule of the weights themselves (default 0.1)
---@field steps? integer of the Newton-Schulz iteration (default 5)
---@field adjust? string the rate of a matrix: "original": times sqrt(max(1, rows / columns)); "match_rms_adamw": times 0.2 sqrt(max(rows, columns)), so that rates are as AdamW's (default "original")
---@field groups? table {{match =, frozen =, clip_norm =, clip_value =, optimizer = or any option =}, ...}: the first that matches counts; match is a pattern of paths, a function of the parameter or a list of them (default {})

---Muon (Jordan et al., 2024), for matrices inside of a network: momentum whose singular values are made about equal. Of more than two dims the last two are matrices and those before count them, as [experts, in, out]; the kernel [out, ...] of a convolution is one matrix of `out` rows. Vectors and tables of embeddings are refused: they want another kind, a group's `optimizer`, and so does the last layer.
---@param options? orrery.optim.muon.Options
---@return orrery.Optimizer
function orrery.optim.muon(options) end

---@class orrery.optim.nadam.Options
---@field lr? number|orrery.Schedule the rate, or a function of the step (default 2e-3)
---@field b1? number|orrery.Schedule default 0.9
---@field b2? number|orrery.Schedule default 0.999
---@field eps? number|orrery.Schedule default 1e-8
---@field decay? number|orrery.Schedule default 0
---@field decoupled? boolean decay of the weights themselves, as adamw's (default false)
---@field momentum_decay? number|orrery.Schedule momentum is b1 (1 - 0.96^(n momentum_decay) / 2) with the n-th update (default 4e-3)
---@field groups? table {{match =, frozen =, clip_norm =, clip_value =, optimizer = or any option =}, ...}: the first that matches counts; match is a pattern of paths, a function of the parameter or a list of them (default {})

---NAdam (Dozat, 2016): Adam with Nesterov's momentum, which grows to b1 in the first steps.
---@param options? orrery.optim.nadam.Options
---@return orrery.Optimizer
function orrery.optim.nadam(options) end

---@class orrery.optim.one_cycle.Options
---@field peak? number the largest rate
---@field steps? integer the last step
---@field up? number the part of the steps in which the rate grows (default 0.3)
---@field start? number what the first rate is the peak's part of (default 25)
---@field final? number what the last rate is the first one's part of (default 1e4)
---@field phases? integer 3: down to the first rate in as many steps as up, and to the last rate in the others (default 2)
---@field shape? string how rates change within a phase: cos or linear (default 'cos')

---From peak / start up to the peak in the first part of the steps, then down to peak / start / final at the last one.
---@param options orrery.optim.one_cycle.Options
---@return orrery.Schedule
function orrery.optim.one_cycle(options) end

---@class orrery.optim.plateau.Options
---@field peak? number the rate after the warm-up
---@field warmup? integer steps in which the rate grows from 0 (default 0)
---@field mode? string whether smaller values are better, or larger ones: max (default 'min')
---@field factor? number what the rate is multiplied by (default 0.1)
---@field patience? integer values in a row that may be no better; the rate falls with the next one (default 10)
---@field threshold? number how much better a value must be to count (default 1e-4)
---@field threshold_mode? string as a part of the best value; abs: as a difference (default 'rel')
---@field cooldown? integer values after the rate has fallen that do not count (default 0)
---@field floor? number the least rate (default 0)
---@field eps? number the rate stays where it would fall by no more than this (default 1e-8)
---@field name? string of its buffer (default 'optim.plateau')

---A warm-up, then a rate that falls when a value that the script hands over, such as the loss of an evaluation, has not become better for some time: rate = optim.plateau { peak = 0.1 }, and rate:step(value) after each evaluation. Where it stands is a buffer and part of checkpoints, which tell several of them apart by their `name`.
---@param options orrery.optim.plateau.Options
---@return orrery.Plateau
function orrery.optim.plateau(options) end

---@class orrery.optim.polynomial.Options
---@field peak? number the rate after the warm-up
---@field warmup? integer steps in which the rate grows from 0 (default 0)
---@field steps? integer how many there are, the warm-up's among them
---@field power? number default 1
---@field floor? number the rate after the last step (default 0)

---A warm-up, then down to the floor as a power of what is left of the steps: optim.linear if it is 1.
---@param options orrery.optim.polynomial.Options
---@return orrery.Schedule
function orrery.optim.polynomial(options) end

---@class orrery.optim.radam.Options
---@field lr? number|orrery.Schedule the rate, or a function of the step (default 1e-3)
---@field b1? number|orrery.Schedule default 0.9
---@field b2? number|orrery.Schedule default 0.999
---@field eps? number|orrery.Schedule default 1e-8
---@field decay? number|orrery.Schedule default 0
---@field decoupled? boolean decay of the weights themselves, as adamw's (default false)
---@field groups? table {{match =, frozen =, clip_norm =, clip_value =, optimizer = or any option =}, ...}: the first that matches counts; match is a pattern of paths, a function of the parameter or a list of them (default {})

---RAdam (Liu et al., 2020): Adam whose first steps, of which squares tell too little, are momentum's, and whose later ones are rectified.
---@param options? orrery.optim.radam.Options
---@return orrery.Optimizer
function orrery.optim.radam(options) end

---@class orrery.optim.rmsprop.Options
---@field lr? number|orrery.Schedule the rate, or a function of the step (default 0.01)
---@field alpha? number|orrery.Schedule how much of the mean stays with each step (default 0.99)
---@field eps? number|orrery.Schedule default 1e-8
---@field decay? number|orrery.Schedule default 0
---@field groups? table {{match =, frozen =, clip_norm =, clip_value =, optimizer = or any option =}, ...}: the first that matches counts; match is a pattern of paths, a function of the parameter or a list of them (default {})

---RMSprop (Tieleman and Hinton, 2012): each gradient by the root of a running mean of its squares.
---@param options? orrery.optim.rmsprop.Options
---@return orrery.Optimizer
function orrery.optim.rmsprop(options) end

---@class orrery.optim.rprop.Options
---@field lr? number|orrery.Schedule the first step of each weight (default 0.01)
---@field shrink? number|orrery.Schedule what a step is multiplied by where the sign has changed (default 0.5)
---@field grow? number|orrery.Schedule and where it has not (default 1.2)
---@field least? number|orrery.Schedule the smallest step (default 1e-6)
---@field most? number|orrery.Schedule the largest step (default 50)
---@field groups? table {{match =, frozen =, clip_norm =, clip_value =, optimizer = or any option =}, ...}: the first that matches counts; match is a pattern of paths, a function of the parameter or a list of them (default {})

---Rprop (Riedmiller and Braun, 1993), for whole batches: each weight's own step grows while its gradient keeps its sign.
---@param options? orrery.optim.rprop.Options
---@return orrery.Optimizer
function orrery.optim.rprop(options) end

---A constructor of learning-rate schedules with a linear warm-up, whose last step has the peak. shape(t, o, n) is the rate of the steps after it: n counts them from 0, and t is n as a part of all up to `steps`, 1 only after these.
---@param name string
---@param defaults table its options, numbers: {peak = false, warmup = 0, steps = false, ...}; false: must be given; a list: one of numbers; without `warmup` or `steps` it has none
---@param shape fun(t:number,o:table,n:integer):number
---@param check? fun(o:table) fails for options that do not fit
---@return fun(options:table):orrery.Schedule
function orrery.optim.schedule(name, defaults, shape, check) end

---One schedule after another: each has so many steps, which it counts from 1, and the last one all others.
---@param schedules orrery.Schedule[]
---@param steps integer[] one for each but the last
---@return orrery.Schedule
function orrery.optim.sequential(schedules, steps) end

---@class orrery.optim.sgd.Options
---@field lr? number|orrery.Schedule the rate, or a function of the step (default 0.01)
---@field decay? number|orrery.Schedule default 0
---@field groups? table {{match =, frozen =, clip_norm =, clip_value =, optimizer = or any option =}, ...}: the first that matches counts; match is a pattern of paths, a function of the parameter or a list of them (default {})

---Stochastic gradient descent: p - lr * (g + decay * p).
---@param options? orrery.optim.sgd.Options
---@return orrery.Optimizer
function orrery.optim.sgd(options) end

---@class orrery.optim.step.Options
---@field peak? number the rate after the warm-up
---@field warmup? integer steps in which the rate grows from 0 (default 0)
---@field every? integer how many steps have one rate
---@field gamma? number from one rate to the next (default 0.1)

---A warm-up, then `every` steps with the peak, as many with gamma times that, and so on.
---@param options orrery.optim.step.Options
---@return orrery.Schedule
function orrery.optim.step(options) end

---@class orrery.Optimizer
local Optimizer = {}

---For own loops: an object whose update(gradients) changes the model's parameters, but those that are frozen then. Words of the world take it for the list of its states.
---@param model orrery.Module|table
---@return orrery.Attached
function Optimizer:attach(model) end

---@class orrery.Lbfgs
local Lbfgs = {}

---Some iterations on one batch, for which it computes the loss as often as it needs to; all ranks call it. Returns the loss before the step.
---@param batch table as run:step takes it
---@return number
function Lbfgs:step(batch) end

---Writes the history and what else steps keep to a safetensors file; all ranks call it. The model's weights are its own save_weights'.
---@param path string
function Lbfgs:save(path) end

---Goes on from such a file.
---@param path string
function Lbfgs:load(path) end

---@class orrery.Plateau
local Plateau = {}

---Hands over the next value, the same on all ranks, and returns the rate from now on.
---@param value number
---@return number
function Plateau:step(value) end

---@class orrery.strategy
---@field traffic orrery.strategy.traffic
orrery.strategy = {}

---Fully sharded data parallelism by its own name: zero's stage 3.
---@param options? table those of strategy.zero but `stage`
---@return orrery.Strategy
function orrery.strategy.fsdp(options) end

---@class orrery.strategy.auto.Options
---@field tensor? boolean|table whether linear layers may be cut, and which: { column = ..., row = ... } (default false)
---@field pipeline? boolean|table whether there may be stages (default true)
---@field context? boolean|table whether sequences may be cut (default false)
---@field zero? boolean|table whether training state may lie in pieces (default true)
---@field recompute? boolean|string whether activations may be computed again, and of which modules (default true)
---@field memory? string|integer what a rank has, in bytes or as "80GiB"; 0: any (default 0)
---@field tries? integer how many layouts are planned; 0: all that may be the first (default 24)

---Chooses the stack: when the first batch is known, layouts of the model on these ranks are planned, and the one with the shortest planned step is taken. Other entries of the stack stay. An option that is a table has options of the strategy of that name.
---@param options? orrery.strategy.auto.Options
---@return orrery.Strategy
function orrery.strategy.auto(options) end

---@class orrery.strategy.define.Options
---@field name? string required
---@field class? string "exact", "stale" or "approx"; required
---@field options? table {name = default}; a list of texts has those that may be given, the default first (default {})
---@field provides? string words, with commas between, that other strategies may require (default "")
---@field requires? string words that another strategy of the stack must provide (default "")
---@field conflicts? string words that none may provide (default "")
---@field axis? string of exchange and synchronize: the axis over the ranks that share the batch; left out, the strategy's name (default nil)
---@field states? table {name = "zeros" or "parameter"}: tensors kept for each parameter; in full {init = ..., varying = true, leave = "mean"} (default {})
---@field exchange? fun(g,s,options,axis):orrery.Tensor what all agree on of each rank's summand of the mean gradient (default nil)
---@field independent? boolean the ranks train apart (default false)
---@field synchronize? fun(p,s,options,axis,round):orrery.Tensor the new value of a parameter, every options.every steps (default nil)
---@field rounds? integer|fun(options,ranks):integer how many programs of synchronize take turns (default 1)
---@field transform? fun(draft:orrery.Draft,options:table) edits the differentiated program (default nil)
---@field transform_forward? fun(draft:orrery.Draft,options:table) edits the forward ops (default nil)
---@field predict? fun(query:table,options:table):integer bytes that a rank sends (default nil)
---@field schedule? fun(stage,stages,leaves,options):string[] {"F0", "B0", ...} (default nil)

---A strategy of the script's own, called as those of plugins are. docs/strategies/README.md has an example.
---@param definition orrery.strategy.define.Options
---@return fun(options?:table):orrery.Strategy
function orrery.strategy.define(definition) end

---Gradient accumulation: a rank computes its microbatches one after another, forward and backward, and adds their gradients, so that the activations of one are alive at a time. EXACT: gradients are added in the canonical tree, at the price of one accumulator for every level of it that waits.
---@param options? table it has none
---@return orrery.Strategy
function orrery.strategy.accumulate(options) end

---@class orrery.strategy.adasum.Options
---@field size? integer ranks that share the batch; 0: all that are left (default 0)

---Gradients combined by what they have in common: two that are orthogonal are added, two that are parallel averaged, pair by pair up a binary tree. APPROX; the number of ranks is a power of two.
---@param options? orrery.strategy.adasum.Options
---@return orrery.Strategy
function orrery.strategy.adasum(options) end

---@class orrery.strategy.average.Options
---@field every? integer steps between two averages (default 1)
---@field states? boolean optimizer states and buffers become their means as well (default false)
---@field size? integer ranks that share the batch; 0: all that are left (default 0)

---Local SGD: ranks share the batch but train apart, and every few steps their weights become the mean. APPROX: with every = 1, plain SGD and even parts of the batch it is data parallelism up to rounding.
---@param options? orrery.strategy.average.Options
---@return orrery.Strategy
function orrery.strategy.average(options) end

---@class orrery.strategy.context.Options
---@field size? integer ranks that share every sequence; 0: all that are left (default 0)
---@field kind? string attention: "gathered", "ulysses" or "ring" (default 'gathered')
---@field fields? string[]|string batch fields [batch, time, ...]; left out, all that have two dims or more (default nil)
---@field chunks? integer partial sums of every sum over places; 0: one a rank (default 0)

---Context parallelism: the ranks of an axis share every sequence, each works on a part of its places. Attention of a part gathers all keys and values ("gathered"), trades places for heads ("ulysses"), or passes keys and values round ("ring"). Equal to one process to rounding; EXACT with `chunks` and "ulysses".
---@param options? orrery.strategy.context.Options
---@return orrery.Strategy
function orrery.strategy.context(options) end

---@class orrery.strategy.diloco.Options
---@field every? integer steps between two outer steps (default 500)
---@field lr? number of the outer step (default 0.7)
---@field momentum? number of the outer step (default 0.9)
---@field size? integer replicas; 0: all ranks that are left (default 0)

---DiLoCo: replicas train apart with the script's optimizer; every `every` steps an outer one, SGD with Nesterov momentum, takes a step along the mean of what they have changed. APPROX. Strategies behind it in the stack spread each replica over ranks of its own.
---@param options? orrery.strategy.diloco.Options
---@return orrery.Strategy
function orrery.strategy.diloco(options) end

---@class orrery.strategy.easgd.Options
---@field every? integer steps between two meetings (default 10)
---@field alpha? number how far a rank moves towards the centre; alpha times the ranks should stay below 1 (default 0.1)
---@field size? integer ranks that share the batch; 0: all that are left (default 0)

---Elastic averaging SGD: ranks train apart; every few steps each moves a little towards a common centre, and the centre by the sum of these moves towards them. APPROX.
---@param options? orrery.strategy.easgd.Options
---@return orrery.Strategy
function orrery.strategy.easgd(options) end

---@class orrery.strategy.expert.Options
---@field size? integer ranks that share the experts; 0: all that are left (default 0)
---@field over? string what they share beside: "time", that of every sequence, or "batch", the samples (default "time")
---@field fields? string[]|string batch fields [batch, time, ...]; left out, all that have two dims or more (default nil)
---@field chunks? integer partial sums of every sum over places; 0: one a rank (default 0)

---Expert parallelism: the ranks of an axis share every sequence, as with strategy.context, or the batch, as with strategy.data, and each holds a part of the experts. Tokens travel to their experts and back by two all_to_alls. Equal to one process to rounding; EXACT with `chunks`, or `over` the batch.
---@param options? orrery.strategy.expert.Options
---@return orrery.Strategy
function orrery.strategy.expert(options) end

---@class orrery.strategy.gossip.Options
---@field every? integer steps between two exchanges (default 1)
---@field size? integer ranks that share the batch; 0: all that are left (default 0)

---Gossip averaging: ranks train apart; every few steps each takes the mean of its weights and those of another rank, one further away each time, round in a ring. The mean over all ranks stays what it is. APPROX.
---@param options? orrery.strategy.gossip.Options
---@return orrery.Strategy
function orrery.strategy.gossip(options) end

---@class orrery.strategy.place.Options
---@field modules? table|string the modules of each part: {"a", {"b", "c"}}; required
---@field ranks? integer[]|string the rank of each part; left out, one after another (default false)

---Modules placed on ranks by hand: whole layers on one rank after another, or the halves of a layer on two ranks that meet where the model says (Krizhevsky et al., NIPS 2012). EXACT. Microbatches go one at a time; strategy.pipeline keeps several on their way.
---@param options orrery.strategy.place.Options
---@return orrery.Strategy
function orrery.strategy.place(options) end

---@class orrery.strategy.powersgd.Options
---@field rank? integer columns of the factors (default 4)
---@field size? integer ranks that share the batch; 0: all that are left (default 0)

---Gradients of low rank: a matrix travels as two thin factors, found by one step of the power method from those of the step before; what they miss waits for the next steps (error feedback). Vectors are summed whole. APPROX.
---@param options? orrery.strategy.powersgd.Options
---@return orrery.Strategy
function orrery.strategy.powersgd(options) end

---@class orrery.strategy.quantized.Options
---@field bits? integer of an element on its way: 8, or 1: its sign (default 8)
---@field size? integer ranks that share the batch; 0: all that are left (default 0)

---Gradients in 8 bits or in 1: each rank deals its quantized gradient to the ranks, which add their share in f32 and send it on quantized again. What rounding has lost waits for the next steps (error feedback). APPROX.
---@param options? orrery.strategy.quantized.Options
---@return orrery.Strategy
function orrery.strategy.quantized(options) end

---@class orrery.strategy.topk.Options
---@field fraction? integer one element of so many is sent, at least one of each tensor (default 100)
---@field size? integer ranks that share the batch; 0: all that are left (default 0)

---Sparse gradients: of every gradient each rank sends only the largest elements and keeps the rest for the next steps (error feedback). APPROX; with fraction = 1 it is the dense sum.
---@param options? orrery.strategy.topk.Options
---@return orrery.Strategy
function orrery.strategy.topk(options) end

---@class orrery.strategy.data.Options
---@field size? integer ranks that share the batch; 0: all that are left (default 0)
---@field bucket? integer bytes of gradients that travel together (default 26214400)
---@field shares? any how many microbatches each rank gets beside the others: "2,1"; left out: as many

---The strategy plugin of this name.
---@param options? orrery.strategy.data.Options
---@return orrery.Strategy
function orrery.strategy.data(options) end

---@class orrery.strategy.pipeline.Options
---@field size? integer stages, one a rank; 0: as many as `stages` lists, else all ranks that are left (default 0)
---@field stages? any modules of each chunk: "tok,pos,blocks.1-6;blocks.7-12,norm,head"; or auto (default auto)
---@field schedule? any gpipe, 1f1b, interleaved, looped, zb1, zbv, or a function that orders the cells of a stage (default 1f1b)
---@field chunks? integer chunks of the model on each rank: interleaved and looped; 0: 2 there, else 1 (default 0)

---The strategy plugin of this name.
---@param options? orrery.strategy.pipeline.Options
---@return orrery.Strategy
function orrery.strategy.pipeline(options) end

---@class orrery.strategy.precision.Options
---@field compute? 'bf16'|'f16'|'f32'|'fp8' what modules compute in: bf16, f16, f32, or fp8 (default bf16)
---@field keep? any modules that stay in f32, such as norm
---@field scale? 'tensor'|'row'|'delayed' fp8: what has a scale: tensor, row or delayed (default tensor)
---@field except? any fp8: modules whose products stay in bf16
---@field wire? 'bf16'|'f16'|'f32' what gradients are added and sent in: bf16, f16 or f32
---@field loss_scale? any dynamic, or a power of two; f16: dynamic
---@field growth_interval? integer good steps before a dynamic loss scale doubles (default 2000)

---The strategy plugin of this name.
---@param options? orrery.strategy.precision.Options
---@return orrery.Strategy
function orrery.strategy.precision(options) end

---@class orrery.strategy.recompute.Options
---@field mode? 'full'|'selective' full: all but its inputs; selective: what is cheap (default full)
---@field path? any regions such as blocks.*; left out: elements of lists
---@field offload? 'none'|'host'|'disk' host or disk: nothing is repeated, activations wait there (default none)

---The strategy plugin of this name.
---@param options? orrery.strategy.recompute.Options
---@return orrery.Strategy
function orrery.strategy.recompute(options) end

---@class orrery.strategy.server.Options
---@field mode? 'sync'|'async'|'stale' sync: every step waits for all gradients; async: none does; stale: up to a bound (default sync)
---@field servers? integer ranks that hold parameters' optimizer state and step them (default 1)
---@field dedicated? integer 1: servers get no share of the batch, they only serve (default 0)
---@field push? integer async: steps whose gradients are pushed together, added (default 1)
---@field pull? integer async: steps between two pulls of the weights (default 1)
---@field bound? integer stale: steps that a worker may be ahead of the weights it reads (default 0)
---@field log? any async, stale: file that the order of arrivals is written to
---@field replay? any async, stale: such a file, to be followed
---@field size? integer ranks that share the batch; 0: all that are left (default 0)
---@field bucket? integer bytes of parameters that travel together (default 26214400)

---The strategy plugin of this name.
---@param options? orrery.strategy.server.Options
---@return orrery.Strategy
function orrery.strategy.server(options) end

---@class orrery.strategy.tensor.Options
---@field size? integer ranks that share every sample; 0: all that are left (default 0)
---@field column? any linear layers cut by outputs; with row left out: found
---@field row? any linear layers cut by inputs
---@field sequence? integer whether norms and dropouts work on parts of the sequence (default 0)
---@field vocab? integer whether embedding and loss are cut by the vocabulary (default 1)
---@field chunks? integer partial sums of every sum over a cut dim; 0: one a rank (default 0)

---The strategy plugin of this name.
---@param options? orrery.strategy.tensor.Options
---@return orrery.Strategy
function orrery.strategy.tensor(options) end

---@class orrery.strategy.zero.Options
---@field stage? integer what lies in pieces: 1 optimizer state, 2 gradients too, 3 parameters too (default 1)
---@field group? integer ranks that hold one set of pieces; every group has one; 0: all that share the batch (default 0)
---@field cut? 'flat'|'tensor' flat: even pieces; tensor: whole tensors, dealt by size, for any optimizer (default flat)
---@field bucket? integer bytes of parameters that travel together, stages 1 and 2 (default 26214400)
---@field units? any modules that are gathered as one, stage 3: "blocks.*"; auto: elements of lists, and what fills a bucket (default auto)
---@field reshard? integer stage 3: 1 gathers again for backward, 0 keeps what forward gathered (default 1)
---@field prefetch? integer stage 3: units gathered ahead of the one in use (default 1)
---@field each? integer stages 2, 3: 1 gathers parameters and sends gradients for each microbatch, not once a step (default 0)
---@field offload? 'none'|'host'|'disk' where what lies in pieces is kept between uses: host memory or disk (default none)
---@field directory? any of the files of offload = "disk"; left out: the run's, or the system's

---The strategy plugin of this name.
---@param options? orrery.strategy.zero.Options
---@return orrery.Strategy
function orrery.strategy.zero(options) end

---@class orrery.strategy.traffic
orrery.strategy.traffic = {}

---What a rank sends, in bytes, in a sum over the batch that all get; for a strategy's predict.
---@param query table
---@return integer
function orrery.strategy.traffic.sum(query) end

---What a rank sends, in bytes, in an exchange of pieces; for a strategy's predict.
---@param query table
---@return integer
function orrery.strategy.traffic.pieces(query) end

---@class orrery.Stream
local Stream = {}

---@class orrery.Stream.batches.Options
---@field size? integer required; samples in the whole batch, over all ranks
---@field steps? number last step; goes on for ever if left out (default math.huge)
---@field from? integer first step; run.steps + 1 continues a run, after the samples before it are made again (default 1)

---for step, batch in stream:batches{size = 32} do. Fields are HostTensors.
---@param options orrery.Stream.batches.Options
---@return function
function Stream:batches(options) end

---@class orrery.Module
local Module = {}

---@class orrery.Module.load_weights.Options
---@field map? function from a name in the file to a path in the module; nil leaves the tensor out, and a second result of true transposes it, as GPT-2's Conv1D needs
---@field strict? boolean every tensor of the module must be in the file, and the other way round (default true)

---Gives the tensors of a module the values in a safetensors file, in several by their index (model.safetensors.index.json), in what torch.save has written (.pt, .pth, .bin), or in a directory of torch.distributed.checkpoint. Numbers become the dtype of the model's. Returns the paths that got no value, and a list of the names in the file that were not used.
---@param path string
---@param options? orrery.Module.load_weights.Options
---@return string[]
function Module:load_weights(path, options) end

---@class orrery.Module.save_weights.Options
---@field max_shard_size? any bytes in a file, such as "5GB"; a larger tensor has a file of its own (default false)
---@field map? function of orrery.weight_map: tensors have the names that it says, and are transposed as it says (default nil)
---@field config? table what config.json beside the file is to have, as Hugging Face's transformers read it (adapter_config.json beside adapter_model.safetensors, for PEFT); in a GGUF file it is what the header says (default nil)
---@field tokenizer? string of a GGUF file: a tokenizer.json, or the folder of one or of vocab.json and merges.txt (default nil)

---Writes the tensors of a module, by their paths, to a safetensors file; all ranks call it. What is larger than `max_shard_size` goes into several, NAME-00001-of-00003.safetensors; `path`.index.json says which tensor is where, and is what load_weights takes. Either takes the place of what was saved to `path` before. A path that ends in .gguf is a file for llama.cpp, of a model that has a map and a config of GPT-2 or LLaMA.
---@param path string
---@param options? orrery.Module.save_weights.Options
function Module:save_weights(path, options) end

return orrery
