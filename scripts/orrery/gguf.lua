-- SPDX-License-Identifier: Apache-2.0
--
-- GGUF files, version 3, as llama.cpp reads them: what is known of the model by name, then its tensors. Names of tensors
-- are made of those of Hugging Face's transformers, which a map has, and what is known of config.json's fields.
local _, orrery = ...
local engine = orrery.engine
local whole_file = require "orrery.whole_file"

local M = {}

local ALIGNMENT = 32
local TYPES = { f32 = 0, f16 = 1, i32 = 26, i64 = 27, f64 = 28, bf16 = 30 }
local FILE_TYPES = { f32 = 0, f16 = 1, bf16 = 32 } -- what most of the numbers are, for who lists files
local BYTES = { f32 = 4, f16 = 2, bf16 = 2, f64 = 8, i32 = 4, i64 = 8 }

-- Values as a file has them, with their types before them.
local pack = {}
function pack.count(value) return ("<I4I4"):pack(4, value) end
function pack.real(value) return ("<I4f"):pack(6, value) end
function pack.flag(value) return ("<I4B"):pack(7, value and 1 or 0) end
function pack.text(value) return ("<I4s8"):pack(8, value) end

local function packed_list(code, format)
  return function(values)
    local parts = { ("<I4I4I8"):pack(9, code, #values) }
    for i, value in ipairs(values) do parts[i + 1] = format:pack(value) end
    return table.concat(parts)
  end
end
pack.texts, pack.wholes, pack.reals = packed_list(8, "<s8"), packed_list(5, "<i4"), packed_list(6, "<f")

-- Rows of a matrix whose heads turn pairs (i, i + half), in the order in which heads turn pairs (2i, 2i + 1).
local function neighbours(value, heads)
  local shape, rows = value.shape, value.shape[1]
  local half = rows // heads // 2
  return value:reshape(heads, 2, half, -1):transpose(2, 3):reshape(table.unpack(shape))
end

-- By model_type of config.json. `layer` finds the number of a layer and the name below it; `turned` are matrices that
-- transformers keep as [inputs, outputs]; `heads` are those whose rows other programs have in another order.
local architectures = {
  gpt2 = {
    layer = "^transformer%.h%.(%d+)%.(.*)$",
    whole = {
      ["transformer.wte"] = "token_embd", ["transformer.wpe"] = "position_embd", ["transformer.ln_f"] = "output_norm",
      lm_head = "output",
    },
    part = {
      ln_1 = "attn_norm", ["attn.c_attn"] = "attn_qkv", ["attn.c_proj"] = "attn_output", ln_2 = "ffn_norm",
      ["mlp.c_fc"] = "ffn_up", ["mlp.c_proj"] = "ffn_down",
    },
    turned = { attn_qkv = true, attn_output = true, ffn_up = true, ffn_down = true },
    heads = {},
    about = function(c)
      return {
        { "context_length", "count", c.n_positions }, { "embedding_length", "count", c.n_embd },
        { "block_count", "count", c.n_layer }, { "feed_forward_length", "count", c.n_inner or 4 * c.n_embd },
        { "attention.head_count", "count", c.n_head },
        { "attention.layer_norm_epsilon", "real", c.layer_norm_epsilon or 1e-5 },
      }
    end,
    expects = { activation_function = "gelu_new" },
  },
  llama = {
    layer = "^model%.layers%.(%d+)%.(.*)$",
    whole = { ["model.embed_tokens"] = "token_embd", ["model.norm"] = "output_norm", lm_head = "output" },
    part = {
      input_layernorm = "attn_norm", post_attention_layernorm = "ffn_norm", ["self_attn.q_proj"] = "attn_q",
      ["self_attn.k_proj"] = "attn_k", ["self_attn.v_proj"] = "attn_v", ["self_attn.o_proj"] = "attn_output",
      ["mlp.gate_proj"] = "ffn_gate", ["mlp.up_proj"] = "ffn_up", ["mlp.down_proj"] = "ffn_down",
    },
    turned = {},
    heads = { attn_q = "num_attention_heads", attn_k = "num_key_value_heads" },
    about = function(c)
      return {
        { "context_length", "count", c.max_position_embeddings }, { "embedding_length", "count", c.hidden_size },
        { "block_count", "count", c.num_hidden_layers }, { "feed_forward_length", "count", c.intermediate_size },
        { "attention.head_count", "count", c.num_attention_heads },
        { "attention.head_count_kv", "count", c.num_key_value_heads },
        { "attention.layer_norm_rms_epsilon", "real", c.rms_norm_eps },
        { "rope.freq_base", "real", c.rope_theta },
        { "rope.dimension_count", "count", c.head_dim or c.hidden_size // c.num_attention_heads },
      }
    end,
    expects = { hidden_act = "silu" },
  },
}

local function architecture_of(path, config)
  local arch = architectures[config.model_type]
  if not arch then
    orrery.fail(("save_weights: %s: model_type is %s; GGUF is written of gpt2 and llama"):format(path,
      engine.describe(config.model_type)))
  end
  if config.rope_scaling then
    orrery.fail(("save_weights: %s: config has rope_scaling, which is not written; train without it"):format(path))
  end
  for field, value in pairs(arch.expects) do
    if config[field] and config[field] ~= value then
      orrery.fail(("save_weights: %s: %s is '%s'; llama.cpp computes '%s' for it"):format(path, field,
        tostring(config[field]), value))
    end
  end
  return arch
end

-- The name of a tensor without what it is of a layer's part, and this: "blk.0.attn_q.weight", "attn_q".
local function name_of(path, arch, name)
  local stem, kind = name:match "^(.*)%.(%a+)$"
  local layer, below = (stem or ""):match(arch.layer)
  local part
  if layer then part = arch.part[below] else part = arch.whole[stem] end
  if not part then
    orrery.fail(("save_weights: %s: GGUF has no name for '%s'; the map is to give transformers' names"):format(path, name))
  end
  return ("%s%s.%s"):format(layer and ("blk.%d."):format(layer) or "", part, kind), part
end

-- What a file has before the tensors: fields {name, kind, value}.
local function metadata(path, config, arch, tensors, tokens)
  local fields = {
    { "general.architecture", "text", config.model_type }, { "general.alignment", "count", ALIGNMENT },
  }
  local bytes = {}
  for _, each in ipairs(tensors) do bytes[each.dtype] = (bytes[each.dtype] or 0) + each.bytes end
  local most
  for dtype in pairs(FILE_TYPES) do if (bytes[dtype] or 0) > (bytes[most] or 0) then most = dtype end end
  if most then fields[#fields + 1] = { "general.file_type", "count", FILE_TYPES[most] } end
  local about = arch.about(config)
  about[#about + 1] = { "vocab_size", "count", config.vocab_size }
  for _, field in ipairs(about) do
    if math.type(field[3]) == nil or field[2] == "count" and math.tointeger(field[3]) == nil then
      orrery.fail(("save_weights: %s: config of a %s has no number for GGUF's '%s'; it has %s"):format(path,
        config.model_type, field[1], engine.describe(field[3])))
    end
    fields[#fields + 1] = { ("%s.%s"):format(config.model_type, field[1]), field[2], field[3] }
  end
  return table.move(tokens, 1, #tokens, #fields + 1, fields)
end

local function aligned(bytes) return -bytes % ALIGNMENT end

local function header(fields, tensors)
  local parts = { ("<c4I4I8I8"):pack("GGUF", 3, #tensors, #fields) }
  for _, field in ipairs(fields) do parts[#parts + 1] = ("<s8"):pack(field[1]) .. pack[field[2]](field[3]) end
  local offset = 0
  for _, each in ipairs(tensors) do
    parts[#parts + 1] = ("<s8I4"):pack(each.name, #each.shape)
    for i = #each.shape, 1, -1 do parts[#parts + 1] = ("<I8"):pack(each.shape[i]) end -- the innermost first
    parts[#parts + 1] = ("<I4I8"):pack(TYPES[each.dtype], offset)
    offset = offset + each.bytes + aligned(each.bytes)
  end
  local text = table.concat(parts)
  return text .. ("\0"):rep(aligned(#text))
end

-- What a file has of the states: vectors in f32, as llama.cpp wants them, all else as it is.
local function tensors_of(path, arch, states, names)
  local tensors = {}
  for i, state in ipairs(states) do
    local name, part = name_of(path, arch, names[i])
    local shape = table.move(state.shape, 1, #state.shape, 1, {})
    local turned = arch.turned[part] and #shape == 2
    if turned then shape[1], shape[2] = shape[2], shape[1] end
    local dtype = #shape < 2 and "f32" or state.dtype
    if not TYPES[dtype] then
      orrery.fail(("save_weights: %s: GGUF has no %s, which '%s' is"):format(path, dtype, names[i]))
    end
    local bytes = BYTES[dtype]
    for _, extent in ipairs(shape) do bytes = bytes * extent end
    tensors[i] = {
      state = state, name = name, heads = arch.heads[part], turned = turned, shape = shape, dtype = dtype, bytes = bytes,
    }
  end
  return tensors
end

local function value_of(tensor, config)
  local value = tensor.state:read()
  if tensor.turned then value = value:transpose() end
  if tensor.heads then value = neighbours(value, config[tensor.heads]) end
  return value.dtype == tensor.dtype and value or value:cast(tensor.dtype)
end

-- Writes states by the names that transformers have for them; all ranks call it.
function M.save(path, states, names, config, tokenizer)
  local arch = architecture_of(path, config)
  local tensors = tensors_of(path, arch, states, names)
  local tokens = require("orrery.gguf_tokens").fields(path, tokenizer, config)
  local head = header(metadata(path, config, arch, tensors, tokens), tensors)
  whole_file.write(path, function(write)
    write(head)
    for _, each in ipairs(tensors) do
      local value = value_of(each, config) -- of the ranks that hold it, so all read it
      write(engine.bytes(value), ("\0"):rep(aligned(each.bytes)))
    end
  end)
end

return M
