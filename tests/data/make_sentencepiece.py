# SPDX-License-Identifier: Apache-2.0
"""Writes small models of SentencePiece, trained by its own package, and its ids and texts of an edge corpus. Takes
sentencepiece and what make_tokenizer_json.py takes, whose corpus it shares."""
import io
import json
import pathlib

import sentencepiece
from make_tokenizer_json import CORPUS, TEXTS

FILES = pathlib.Path(__file__).parent / "files" / "sentencepiece"
KINDS = {
    "unigram": {"model_type": "unigram", "vocab_size": 200, "character_coverage": 0.99},
    "bpe": {"model_type": "bpe", "vocab_size": 420, "byte_fallback": True, "split_digits": True,
            "normalization_rule_name": "identity", "user_defined_symbols": ["<sep>", "fox"]},
    "char": {"model_type": "char", "vocab_size": 120, "bos_id": -1, "add_dummy_prefix": False,
             "normalization_rule_name": "identity"},
    "word": {"model_type": "word", "vocab_size": 60, "remove_extra_whitespaces": False, "normalization_rule_name": "identity"},
}


def main():
    FILES.mkdir(exist_ok=True)
    cases = {}
    for kind, options in KINDS.items():
        made = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(CORPUS), model_writer=made, minloglevel=2,
                                                 hard_vocab_limit=False, **options)
        (FILES / f"{kind}.model").write_bytes(made.getvalue())
        model = sentencepiece.SentencePieceProcessor(model_proto=made.getvalue())
        cases[kind] = [[ids := model.encode(text), model.decode(ids)] for text in TEXTS]
    (FILES / "texts.json").write_text(json.dumps({"texts": TEXTS, "cases": cases}, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
