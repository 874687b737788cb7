# SPDX-License-Identifier: Apache-2.0
#
# Writes a tiny BERT, T5, ViT, Mixtral and Qwen3-MoE with random weights as Hugging Face's transformers save them, and what they compute:
# inputs (x.npy, and of BERT and T5 y.npy) and logits.npy. Takes torch and transformers.
import pathlib
import shutil

import numpy
import torch
import transformers

FILES = pathlib.Path(__file__).parent / "files"
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


def make(name, model, **inputs):
    model.eval()
    with torch.no_grad():  # biases and norms begin as zeros and ones, which would hide that they are exchanged
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape))
        logits = model(**inputs).logits
    folder = FILES / name
    shutil.rmtree(folder, ignore_errors=True)
    model.save_pretrained(folder)
    for path in folder.glob("*config.json"):
        path.unlink()
    for field, value in zip(("x", "y"), (each for key, each in inputs.items() if key != "attention_mask")):
        numpy.save(folder / f"{field}.npy", value.numpy())
    numpy.save(folder / "logits.npy", logits.numpy())


torch.manual_seed(2)
ids = torch.randint(1, 31, (3, 12))
ids[0, 9:] = 0  # padding
seen = (ids != 0).long()
make("bert", transformers.BertForMaskedLM(transformers.BertConfig(
    vocab_size=31, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
    max_position_embeddings=16, **NO_DROPOUT)),
    input_ids=ids, token_type_ids=torch.randint(0, 2, (3, 12)), attention_mask=seen)
make("t5", transformers.T5ForConditionalGeneration(transformers.T5Config(
    vocab_size=31, d_model=16, d_kv=8, d_ff=64, num_layers=2, num_heads=2, relative_attention_num_buckets=8,
    relative_attention_max_distance=10, dropout_rate=0.0)),
    input_ids=ids, decoder_input_ids=torch.randint(1, 31, (3, 9)), attention_mask=seen)
make("vit", transformers.ViTForImageClassification(transformers.ViTConfig(
    hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32, image_size=8, patch_size=4,
    num_channels=3, num_labels=5, **NO_DROPOUT)), pixel_values=torch.randn(3, 3, 8, 8))
sizes = {"vocab_size": 31, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
         "max_position_embeddings": 16}
ids = torch.randint(1, 31, (3, 12))
make("mixtral", transformers.MixtralForCausalLM(transformers.MixtralConfig(
    intermediate_size=12, num_local_experts=4, num_experts_per_tok=2, rope_theta=1e6, **sizes)), input_ids=ids)
make("qwen3_moe", transformers.Qwen3MoeForCausalLM(transformers.Qwen3MoeConfig(
    head_dim=8, moe_intermediate_size=12, num_experts=6, num_experts_per_tok=3, norm_topk_prob=True, rope_theta=1e6,
    **sizes)), input_ids=ids)
