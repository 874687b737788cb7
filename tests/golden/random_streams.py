# SPDX-License-Identifier: Apache-2.0
"""Random streams of data.from, as an expression of Lua's and as the list of the samples of one round."""
from random_data import lua


class Stream:
    """fields: {name: (dtype, dims, what it is filled up with or None)}; shuffle: how many samples wait."""
    stream, window, changed, shards = True, 0, None, 1

    def __init__(self, text, fields, samples, shuffle, lengths):
        self.lua, self.fields, self.samples, self.files, self.shuffle, self.lengths = text, fields, samples, {}, shuffle, lengths

    def items(self):
        return self.samples

    def batches(self, size):
        """Of one that is not shuffled, without end: lists of samples that are filled up."""
        waiting = {}
        while True:
            for sample in self.samples:
                length = self.length(sample)
                waiting.setdefault(length, []).append(sample)
                if len(waiting[length]) == size:
                    yield self.filled(waiting.pop(length))

    def length(self, sample):
        """Of the bucket that it goes to; 0 if there are none."""
        return min((n for n in self.lengths if n >= len(sample["list"])), default=0)

    def filled(self, samples):
        longest = self.length(samples[0]) or max((len(s["list"]) for s in samples if "list" in s), default=0)
        return [{f: v + [self.fields[f][2]] * (longest - len(v)) if self.fields[f][2] is not None else v for f, v in s.items()}
                for s in samples]


def random_stream(dice):
    count, listed = 1 + dice.below(25), dice.chance(0.6)
    lengths = dice.choice([[], [3, 6], [2, 4, 9], [6]]) if listed else []
    fields = {"i": (dice.choice(["i64", "i32"]), [], None), "real": (dice.choice(["f32", "f64", "f16"]), [], None),
              "host": (dice.choice(["u8", "i32", "f64"]), [2], None)}
    if listed:
        fields["list"] = (dice.choice(["i64", "i32", "f32"]), [None], dice.choice([0, -1, 7]))
    samples, shown = [], []
    for i in range(count):
        sample = {"i": [i + 1], "real": [dice.below(60) + 0.5], "host": [dice.below(100), dice.below(100)]}
        if listed:
            sample["list"] = [dice.below(100) for _ in range(1 + dice.below(6))]
        samples.append(sample)
        values = [f"{f} = " + (lua(v[0]) if f in ("i", "real") else f"orrery.tensor({lua(v)}, '{fields[f][0]}')" if f == "host" else lua(v))
                  for f, v in sample.items()]
        shown.append("{ " + ", ".join(values) + " }")
    usual = {"i": "i64", "real": "f32", "host": fields["host"][0], "list": "i64"}
    dtypes = ", ".join(f"{f} = '{kind}'" for f, (kind, _, _) in fields.items() if kind != usual[f] or dice.chance(0.2))
    shuffle = dice.choice([0, 0, 2, 5, 40])
    options = [f"dtypes = {{ {dtypes} }}", f"shuffle = {shuffle}", f"seed = {dice.below(100)}", f"lengths = {lua(lengths)}"]
    if listed:
        options.append(f"pad = {{ list = {fields['list'][2]} }}")
    text = f"""(function()
  local samples = {{ {', '.join(shown)} }}
  return data.from(function()
    local i = 0
    return function()
      i = i + 1
      return samples[i]
    end
  end, {{ {', '.join(options)} }})
end)()"""
    return Stream(text, fields, samples, shuffle, lengths)
