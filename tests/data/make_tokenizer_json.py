# SPDX-License-Identifier: Apache-2.0
"""Writes what Orrery's reader of tokenizer.json is held against: small tokenizers of each kind, trained by Hugging Face's
tokenizers, and the ids and texts of an edge corpus by the same library. Takes tokenizers and sentencepiece."""
import base64
import io
import json
import pathlib
import sys
import tempfile

import sentencepiece
from tokenizers import AddedToken, Regex, Tokenizer
from tokenizers import decoders as D, models, normalizers as N, pre_tokenizers as P, processors as PP, trainers as T

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "observer"))
from event_records import fields

FILES = pathlib.Path(__file__).parent / "files" / "tokenizer_json"
# Combining marks, joined emoji, scripts from right to left, controls, long blanks, special tokens in words.
TEXTS = [
    "", " ", "  ", "\n", "a", "Hello, world!", "  leading", "trailing  ", "a  b   c", " " * 70 + "x" + "\n" * 9, "tabs\t\tand\r\n\r\nlines\n\n\n",
    "I'm you're he's we'll they'd I'VE CAN'T don't", "The lazy dog sleeps; hotdog dog-house dog", "lower newest widest unbelievable tokenizers",
    "naïve café e\u0301 A\u0301\u0302 \u0301x \u0301", "ﬁ ① ㎏ Ａ ﷺ \u1e9b\u0323", "İstanbul ǅ ẞ ΑΣ Σ", "日本語のテキスト 漢字ABC 東京12", "Привет, МИР", "مرحبا بالعالم 123", "שלום\u200f עולם",
    "😀😀 👩\u200d👩\u200d👧 🇩🇪🇫🇷 👍🏽", "हिन्दी தமிழ் ไทย 한국어 \u1112\u1161\u11ab", "½ ² Ⅷ ٣٤ ৫ 1234567 3.14", "a\u00a0b\u2003c\u3000d\u200be\u2028f", "\u0000\u0001\u007f\u0085\u009f\ufeff\ufffd",
    "x" * 120, "ab" * 60 + " cd" * 20, "foo_bar __x__ a-b a--b C++ x=1;y+=2//3", "!!! ... ?!\"quoted\" (a) [b]", "<s>", "</s><s> a<s>b <unk> </s>", "<|endoftext|>x <|endoftext|>",
    "[CLS] a [SEP] [MASK]! [UNK]un", "a [mask]  b[mask]c  [mask]", "  Fox fox  Foxes Fox", "a <sp>  b<sp>", "<|begin_of_text|>a<|eot|><|eo", "\u2581a \u2581\u2581 b\u2581", "<0x41><0x0A>", "z" * 45 + " " + "q" * 39,
    "def f(x):\n    return x + 1  # one\n\n", "\ue000\U000f0000\u0378 \u00ad", "Ⓐⓩ𝐀𝟘 ª º ₂", "don\u2019t \u2018q\u2019 —", "\u0600\u06dd 1\u0660",
]
CORPUS = [
 "The quick brown fox jumps over the lazy dog. The lazy dog sleeps; the fox doesn't.", "Hello, world! I'm you're he's we'll they'd I've can't",
 "naïve café ÀÉÎ résumé", "日本語のテキスト 漢字 東京 日本", "Привет, мир. Привет", "مرحبا بالعالم", "def f(x):\n    return x + 1  # one\n\n",
 "123 4567 3.14 1,000 12345", "lower lowest newer newest wider widest low new wide", "tokenization tokenizer tokens token unbelievable unhappy"] * 3
LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


def gpt2():
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = P.ByteLevel(add_prefix_space=False)
    t.train_from_iterator(CORPUS, T.BpeTrainer(vocab_size=330, show_progress=False, special_tokens=["<|endoftext|>"], initial_alphabet=P.ByteLevel.alphabet()))
    t.decoder = D.ByteLevel()
    t.post_processor = PP.ByteLevel(trim_offsets=False)
    return t


def llama3():
    t = Tokenizer(models.BPE(ignore_merges=True))
    t.pre_tokenizer = P.Sequence([P.Split(Regex(LLAMA3), "isolated"), P.ByteLevel(add_prefix_space=False, use_regex=False)])
    t.train_from_iterator(CORPUS, T.BpeTrainer(vocab_size=330, show_progress=False, initial_alphabet=P.ByteLevel.alphabet()))
    t.add_special_tokens(["<|begin_of_text|>", "<|end_of_text|>", "<|eot|>"])
    b = t.token_to_id("<|begin_of_text|>")
    t.post_processor = PP.Sequence([PP.ByteLevel(trim_offsets=False), PP.TemplateProcessing(single="<|begin_of_text|> $A", pair="<|begin_of_text|> $A <|begin_of_text|>:1 $B:1", special_tokens=[("<|begin_of_text|>", b)])])
    t.decoder = D.ByteLevel()
    return t


def llama2():
    special = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)]
    t = Tokenizer(models.BPE(byte_fallback=True, fuse_unk=True, unk_token="<unk>"))
    t.normalizer = N.Sequence([N.Prepend("▁"), N.Replace(" ", "▁")])
    t.train_from_iterator([c for c in CORPUS if c.isascii()], T.BpeTrainer(vocab_size=380, show_progress=False, special_tokens=special))
    j = json.loads(t.to_str())
    j["added_tokens"] = [a for a in j["added_tokens"] if not a["content"].startswith("<0x")]
    t = Tokenizer.from_str(json.dumps(j))
    t.post_processor = PP.TemplateProcessing(single="<s> $A", pair="<s> $A <s>:1 $B:1", special_tokens=[("<s>", 1)])
    t.decoder = D.Sequence([D.Replace("▁", " "), D.ByteFallback(), D.Fuse(), D.Strip(" ", 1, 0)])
    return t


def gemma():
    t = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    t.pre_tokenizer = P.Metaspace(prepend_scheme="first", split=False)
    special = ["<pad>", "<unk>", "<bos>"] + [f"<0x{b:02X}>" for b in range(256)]
    t.train_from_iterator(CORPUS, T.BpeTrainer(vocab_size=420, show_progress=False, special_tokens=special))
    j = json.loads(t.to_str())
    j["added_tokens"] = [a for a in j["added_tokens"] if not a["content"].startswith("<0x")]
    t = Tokenizer.from_str(json.dumps(j))
    t.add_tokens([AddedToken("\n\n", normalized=False), AddedToken("[mask]", lstrip=True, rstrip=True, normalized=False), AddedToken("dog", single_word=True, normalized=True)])
    t.decoder = D.Sequence([D.Replace("▁", " "), D.ByteFallback(), D.Fuse()])
    return t


def bert(lower=True):
    t = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=40))
    t.normalizer = N.BertNormalizer(lowercase=lower)
    t.pre_tokenizer = P.BertPreTokenizer()
    t.train_from_iterator(CORPUS, T.WordPieceTrainer(vocab_size=260, show_progress=False, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]))
    t.post_processor = PP.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    t.decoder = D.WordPiece()
    return t


def t5(fallback=False):
    t = Tokenizer(models.Unigram())
    t.normalizer = N.Sequence([N.Nmt(), N.NFKC(), N.Replace(Regex(" {2,}"), " ")])
    t.pre_tokenizer = P.Metaspace()
    t.train_from_iterator(CORPUS, T.UnigramTrainer(vocab_size=180, show_progress=False, special_tokens=["<pad>", "</s>", "<unk>"], unk_token="<unk>"))
    t.post_processor = PP.TemplateProcessing(single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)])
    t.decoder = D.Metaspace()
    if fallback:
        j = json.loads(t.to_str())
        j["model"]["vocab"] += [[f"<0x{b:02X}>", -20.0 - b / 256] for b in range(256)]
        j["model"]["byte_fallback"] = True
        j["decoder"] = {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}]}
        t = Tokenizer.from_str(json.dumps(j))
    return t


def t5_map():
    """With a table of SentencePiece's of what becomes of characters."""
    rules = ["FB01\t66 69", "65 301\tE9", "E9\tE9 21", "41\t61", "41 42\t78", "3000\t20", "200B\t", "1F1E9 1F1EA\t44 45", "2160\t49", "AD\t"]
    with tempfile.TemporaryDirectory() as folder:
        table = pathlib.Path(folder) / "rules.tsv"
        table.write_text("\n".join(rules) + "\n")
        made = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(["the quick brown fox jumps over the lazy dog and more words"] * 20), model_writer=made,
            vocab_size=30, hard_vocab_limit=False, minloglevel=2, normalization_rule_tsv=str(table))
    rule = dict(fields(dict(fields(made.getvalue()))[3]))[2]  # normalizer_spec.precompiled_charsmap
    j = json.loads(t5().to_str())
    j["normalizer"] = {"type": "Sequence", "normalizers": [
        {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(rule).decode()},
        {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}]}
    return Tokenizer.from_str(json.dumps(j))


def mixed():
    """What the others have not: a BPE with affixes, and pre-tokenizers in a row."""
    t = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    t.normalizer = N.Sequence([N.Strip(), N.NFD(), N.StripAccents(), N.Lowercase(), N.Replace("_", " ")])
    t.pre_tokenizer = P.Sequence([P.Whitespace(), P.Digits(individual_digits=True), P.Punctuation("merged_with_previous"), P.Split(Regex(r"\w{6}"), "merged_with_next")])
    t.train_from_iterator(CORPUS, T.BpeTrainer(vocab_size=220, show_progress=False, special_tokens=["<unk>", "<s>", "</s>"], end_of_word_suffix="</w>"))
    t.add_tokens([AddedToken("Fox", normalized=True, lstrip=True), AddedToken("<sp>", normalized=False, special=True, rstrip=True)])
    t.post_processor = PP.RobertaProcessing(("</s>", 2), ("<s>", 1))
    t.decoder = D.BPEDecoder()
    return t


def words():
    t = Tokenizer(models.WordLevel(unk_token="<unk>"))
    t.pre_tokenizer = P.Sequence([P.WhitespaceSplit(), P.Split("-", "removed"), P.Digits(), P.FixedLength(9), P.Split(Regex(r"[aeiou]+"), "contiguous", invert=True)])
    t.normalizer = N.NFKD()
    t.train_from_iterator(CORPUS, T.WordLevelTrainer(vocab_size=150, show_progress=False, special_tokens=["<unk>"]))
    return t


MAKERS = dict(gpt2=gpt2, llama3=llama3, llama2=llama2, gemma=gemma, bert=bert, bert_cased=lambda: bert(False), t5=t5, t5_bytes=lambda: t5(True), t5_map=t5_map, mixed=mixed, words=words)


def case(tokenizer, text):
    """[ids, the text of them, ids without those of begin and end, the text of all]; from the third on if they differ."""
    ids, plain = tokenizer.encode(text).ids, tokenizer.encode(text, add_special_tokens=False).ids
    found = [ids, tokenizer.decode(ids) if ids else "", plain, tokenizer.decode(ids, skip_special_tokens=False) if ids else ""]
    return found if plain != ids or found[1] != found[3] else found[:2]


def record():
    FILES.mkdir(parents=True, exist_ok=True)
    cases = {}
    for name, make in MAKERS.items():
        path = FILES / f"{name}.json"
        if not path.exists():  # training draws by chance: it is made once
            path.write_text(json.dumps(json.loads(make().to_str()), ensure_ascii=False, separators=(",", ":")) + "\n")
        tokenizer = Tokenizer.from_file(str(path))
        cases[name] = [case(tokenizer, text) for text in TEXTS]
    (FILES / "texts.json").write_text(json.dumps({"texts": TEXTS, "cases": cases}, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    record()
