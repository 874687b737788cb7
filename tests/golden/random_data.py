# SPDX-License-Identifier: Apache-2.0
"""Random datasets, each as an expression of Lua's with the files that it reads, and as the list of its samples.

A sample is {field: numbers}. What docs/data.md leaves to chance is not modelled: random_feeds.py checks of it what it
promises.
"""
import gzip
import math
import struct
import zlib

CODES = {"f16": ("<e", "f2"), "f32": ("<f", "f4"), "f64": ("<d", "f8"), "u8": ("<B", "u1"), "i8": ("<b", "i1"), "u16": ("<H", "u2"),
         "i16": ("<h", "i2"), "u32": ("<I", "u4"), "i32": ("<i", "i4"), "u64": ("<Q", "u8"), "i64": ("<q", "i8"), "bool": ("<?", "b1")}
BECOMES = {"i8": "i32", "u16": "i32", "i16": "i32", "u32": "i64", "u64": "i64"}  # else the same
IDX = {"u8": 8, "i8": 9, "i16": 11, "i32": 12, "f32": 13, "f64": 14}


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def pack(kind, numbers, order="<"):
    code = order + CODES[kind][0][1]
    return b"".join(struct.pack(code, x) for x in numbers)


def random_number(dice, kind):
    if kind == "bool":
        return dice.below(2)
    if kind in ("f16", "f32", "f64"):
        return (dice.below(4001) - 2000) / 8
    bits = int(kind[1:]) if kind != "u64" else 63
    low = -(1 << bits - 1) if kind[0] == "i" else 0
    if dice.chance(0.3):
        return dice.choice([low, low + (1 << bits) - 1])
    return low + (dice.below(2**31) << 32 | dice.below(2**31)) % (1 << bits)


def npy(kind, dims, numbers, fortran):
    """The bytes of a .npy file; numbers are in rows."""
    if fortran:
        places = [0]  # in rows, of the file's elements: the first dim counts fastest
        for d, size in enumerate(dims):
            places = [p + i * math.prod(dims[d + 1:]) for i in range(size) for p in places]
        numbers = [numbers[p] for p in places]
    order = "|" if CODES[kind][1][1] == "1" else "<"
    shape = "(" + "".join(f"{d}, " for d in dims).rstrip(" " if len(dims) == 1 else ", ") + ")"
    header = f"{{'descr': '{order}{CODES[kind][1]}', 'fortran_order': {fortran}, 'shape': {shape}, }}".encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + pack(kind, numbers)


def png(size, pixels):
    """A picture of RGB; pixels are [H][W][3] in a row."""
    lines = b"".join(b"\0" + bytes(pixels[y * size * 3:][:size * 3]) for y in range(size))

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b""))


def lua(x):
    if isinstance(x, (list, tuple)):
        return f"{{ {', '.join(map(lua, x))} }}"
    return str(x).lower() if isinstance(x, bool) else repr(x)


def nested(numbers, dims):
    if not dims:
        return numbers[0]
    part = math.prod(dims[1:])
    return [nested(numbers[i * part:][:part], dims[1:]) for i in range(dims[0])]


class Data:
    """lua: the expression, FOLDER being where the files are; fields: {name: (dtype, dims)}; window: tokens in a sample."""

    def __init__(self, text, fields, samples, files=None, tokens=None, window=0):
        self.lua, self.fields, self.samples, self.files = text, fields, samples, files or {}
        self.tokens, self.window = tokens, window
        self.shards, self.shard = 1, 0
        self.changed = None  # of images: dims, crop, pad, flip, mean, std
        self.stream = False

    def items(self):
        """The samples of an epoch in their order: of tokens, windows side by side."""
        return self.samples[::max(self.window, 1)][self.shard::self.shards]


# -- what is read ------------------------------------------------------------------------------------------------------
def arrays(dice, name, fields=None, least=1):
    """.npy files, tensors and lists beside each other."""
    count, parts, files = least + dice.below(25), [], {}
    samples = [{} for _ in range(count)]
    fields = fields or {chr(ord("a") + i): (dice.choice(list(CODES)), [1 + dice.below(3) for _ in range(dice.below(3))])
                        for i in range(1 + dice.below(3))}
    types = {}
    for field, (kind, dims) in fields.items():
        numbers = [random_number(dice, kind) for _ in range(count * math.prod(dims))]
        for sample, row in zip(samples, nested(numbers, [count, math.prod(dims)])):
            sample[field] = row
        types[field] = (BECOMES.get(kind, kind), dims)
        if BECOMES.get(kind, kind) == kind and dice.chance(0.3):
            shown = nested([bool(x) if kind == "bool" else x for x in numbers], [count, *dims])
            parts.append(f"{field} = orrery.tensor({lua(shown)}, '{kind}')")
        else:
            files[f"{name}{field}.npy"] = npy(kind, [count, *dims], numbers, dice.chance(0.4))
            parts.append(f"{field} = 'FOLDER/{name}{field}.npy'")
    return Data(f"data.arrays {{ {', '.join(parts)} }}", types, samples, files)


def image_arrays(dice, name):
    dims = [dice.choice([1, 3]), 3 + dice.below(3), 3 + dice.below(3)]
    return arrays(dice, name, {"x": (dice.choice(["f32", "f32", "u8", "f16"]), dims), "id": ("i64", [])}, 2)


def csv(dice, name):
    count, kinds = 1 + dice.below(25), {}
    for i in range(1 + dice.below(4)):
        kinds[f"c {i}" if dice.chance(0.2) else f"c{i}"] = dice.choice(["f32", "f64", "i32", "i64", "u8", "bool", "f16", "class"])
    one = [c for c, kind in kinds.items() if kind == "class"][:1]
    kinds = {c: "f32" if kind == "class" and c not in one else kind for c, kind in kinds.items()}
    words = ["cat", 'a "dog"', "x,y", "", "ü", "two\nlines", "Cat"]
    rows = [[dice.choice(words) if kind == "class" else random_number(dice, kind) for kind in kinds.values()] for _ in range(count)]
    classes = sorted({row[list(kinds).index(one[0])] for row in rows}, key=str.encode) if one else []

    def shown(value):
        if not isinstance(value, str):
            return dice.choice(["{}", "{}", '"{}"', " {}"]).format(value)
        return '"' + value.replace('"', '""') + '"' if set(value) & set(',"\n') or not value or dice.chance(0.3) else value
    end = dice.choice(["\n", "\r\n"])
    lines = [",".join(kinds)] + [",".join(map(shown, row)) for row in rows]
    text = (dice.choice(["", "\ufeff"]) + end.join(lines) + dice.choice(["", end, end + end])).encode()
    packed = dice.chance(0.3)
    file = f"{name}.csv" + (".gz" if packed else "")
    fields, dtypes, given, samples = {}, [], [], [{} for _ in range(count)]
    for i, (column, kind) in enumerate(kinds.items()):
        field, listed = f"f{i}", dice.chance(0.3) and kind != "class"
        fields[field] = ("i32" if kind == "class" else kind, [1] if listed else [])
        given.append(f"{field} = " + (f"{{ '{column}' }}" if listed else f"'{column}'"))
        dtypes.append(f"{field} = '{kind}'")
        for sample, row in zip(samples, rows):
            sample[field] = [classes.index(row[i]) if kind == "class" else row[i]]
    options = f", {{ dtypes = {{ {', '.join(dtypes)} }} }}"
    data = Data(f"data.csv('FOLDER/{file}', {{ {', '.join(given)} }}{options})", fields, samples,
                {file: gzip.compress(text) if packed else text})
    data.classes = classes
    return data


def windows(text, tokens, length, kind, files):
    samples = [{"x": tokens[i:i + length], "y": tokens[i + 1:i + length + 1]} for i in range(len(tokens) - length)]
    return Data(text, {"x": (kind, [length]), "y": (kind, [length])}, samples, files, tokens, length)


def tokens(dice, name, length=None, kind=None):
    length = length or 1 + dice.below(5)
    kind = kind or dice.choice(["u8", "u16", "u16", "u32", "u64", "i8", "i16", "i32", "i64"])
    count = length + 2 + dice.below(100)
    ids = dice_shuffled(dice, range(min(count, 120))) + list(range(120, count))
    ids = [x % 120 for x in ids]
    cuts = sorted(dice.below(count + 1) for _ in range(dice.choice([0, 0, 1, 2])))
    files, names = {}, []
    for i, (begin, end) in enumerate(zip([0, *cuts], [*cuts, count])):
        packed = dice.chance(0.2)
        names.append(f"{name}{i}.bin" + (".gz" if packed else ""))
        files[names[-1]] = (gzip.compress if packed else bytes)(pack(kind, ids[begin:end]))
    paths = lua([f"FOLDER/{n}" for n in names]) if len(names) > 1 or dice.chance(0.3) else repr(f"FOLDER/{names[0]}")
    return windows(f"data.tokens({paths}, {{ length = {length}, dtype = '{kind}' }})", ids, length, BECOMES.get(kind, kind), files)


def text(dice, name):
    length, chars = 1 + dice.below(5), dice.chance(0.6)
    content = "".join(dice.choice("abcdefgh éü€\n") for _ in range(length + 2 + dice.below(60)))
    ids = [sorted(set(content)).index(c) for c in content] if chars else list(content.encode())
    half = len(content) // 2
    files = {f"{name}0.txt": content[:half].encode(), f"{name}1.txt": content[half:].encode()}
    source = lua([f"FOLDER/{n}" for n in files]) if half else repr(f"FOLDER/{name}1.txt")
    return windows(f"data.text({source}, {{ ctx = {length}{'' if chars else ', tokens = ' + repr('bytes')} }})", ids, length, "i32", files)


def idx(dice, name):
    kind, labels = dice.choice(["u8", "u8", "i16", "f32", "f64"]), dice.choice(["u8", "i8", "i32"])
    count, flat = 1 + dice.below(20), dice.chance(0.6)
    image = [1 if flat else 1 + dice.below(3), 2 + dice.below(3), 2 + dice.below(3)]
    dtype = dice.choice(["f32", "f64"] + (["u8"] if kind == "u8" else []))
    numbers = [random_number(dice, kind) for _ in range(count * math.prod(image))]
    ys = [random_number(dice, labels) for _ in range(count)]

    def file(kind, dims, values):
        return bytes([0, 0, IDX[kind], len(dims)]) + struct.pack(f">{len(dims)}I", *dims) + pack(kind, values, ">")
    files = {f"{name}.x": file(kind, [count, *image[flat:]], numbers), f"{name}.y": file(labels, [count], ys)}
    if dice.chance(0.3):
        files[f"{name}.x"] = gzip.compress(files[f"{name}.x"])
    if kind == "u8" and dtype != "u8":
        numbers = [f32(x / 255) if dtype == "f32" else x / 255 for x in numbers]
    samples = [{"x": x, "y": [y]} for x, y in zip(nested(numbers, [count, math.prod(image)]), ys)]
    return Data(f"data.idx('FOLDER/{name}.x', 'FOLDER/{name}.y', {{ dtype = '{dtype}' }})", {"x": (dtype, image), "y": ("i32", [])},
                samples, files)


def cifar(dice, name):
    hundred, samples, files = dice.chance(0.5), [], {}
    for part in range(1 + dice.below(2)):
        records = []
        for _ in range(1 + dice.below(2)):
            labels = [dice.below(20), dice.below(100)] if hundred else [dice.below(10)]
            pixels = [dice.below(256) for _ in range(3072)]
            records.append(bytes(labels + pixels))
            samples.append({"x": pixels, "y": [labels[-1]], **({"coarse": labels[:1]} if hundred else {})})
        files[f"{name}{part}"] = b"".join(records)
    fields = {"x": ("u8", [3, 32, 32]), "y": ("i32", []), **({"coarse": ("i32", [])} if hundred else {})}
    options = f"{{ classes = {100 if hundred else 10}, dtype = 'u8' }}"
    return Data(f"data.cifar({lua([f'FOLDER/{n}' for n in files])}, {options})", fields, samples, files)


def images(dice, name):
    size, samples, files = 2 + dice.below(3), [], {}
    for label in range(1 + dice.below(3)):
        for i in range(1 + dice.below(6)):
            pixels = [dice.below(256) for _ in range(size * size * 3)]
            files[f"{name}/class {label}/{i}.png"] = png(size, pixels)
            samples.append({"x": [f32(pixels[p * 3 + c] / 255) for c in range(3) for p in range(size * size)], "y": [label]})
    return Data(f"data.images('FOLDER/{name}', {{ size = {size} }})", {"x": ("f32", [3, size, size]), "y": ("i32", [])}, samples, files)


def dice_shuffled(dice, items):
    items = list(items)
    for i in range(len(items) - 1, 0, -1):
        j = dice.below(i + 1)
        items[i], items[j] = items[j], items[i]
    return items


# -- what becomes of it ------------------------------------------------------------------------------------------------
def split(dice, data):
    """One of the two parts, or nothing if one would be empty."""
    fraction, second = (1 + dice.below(9)) / 10, dice.chance(0.5)
    parts = data.tokens if data.window else data.samples
    cut = math.floor(len(parts) * fraction)
    if data.shards > 1:
        cut -= cut % (data.shards * max(data.window, 1))
    if min(cut, len(parts) - cut) <= data.window:
        return None
    chosen, text = parts[cut:] if second else parts[:cut], f"part({1 + second}, {data.lua}:split({fraction}))"
    if data.window:
        made = windows(text, chosen, data.window, data.fields["x"][0], data.files)
    else:
        made = Data(text, data.fields, chosen, data.files)
    rest = [len(parts) - data.window - cut, cut - data.window]
    if any(-(-n // max(data.window, 1)) < data.shards for n in rest):
        return None
    made.shard, made.shards, made.changed = data.shard, data.shards, data.changed
    return made


def shard(dice, data):
    size = 2 + dice.below(3)
    rank = dice.below(size)
    if len(data.items()) < size:
        return None
    made = Data(f"{data.lua}:shard({rank}, {size})", data.fields, data.samples, data.files, data.tokens, data.window)
    made.shard, made.shards, made.changed = data.shard + rank * data.shards, data.shards * size, data.changed
    return made


def augment(dice, data):
    """Of images with all pixels different and a number beside each."""
    if data.changed or data.window or "x" not in data.fields or len(data.fields["x"][1]) != 3:
        return None
    kind, (channels, height, width) = data.fields["x"]
    pad, flip = (dice.below(3) if height < 32 else 0), dice.chance(0.6)
    crop = 2 + dice.below(min(height, width) + 2 * pad - 1) if pad or dice.chance(0.5) and height < 32 else 0
    mean, std = ([dice.below(5) / 8 for _ in range(channels)], [1 + dice.below(4) / 4 for _ in range(channels)]) \
        if kind == "f32" and dice.chance(0.5) else ([], [])
    made = Data(f"{data.lua}:augment {{ crop = {crop}, pad = {pad}, flip = {lua(flip)}, mean = {lua(mean)}, std = {lua(std)} }}",
                {**data.fields, "x": (kind, [channels, crop or height, crop or width])}, data.samples, data.files)
    made.shard, made.shards = data.shard, data.shards
    made.changed = (data.fields["x"][1], crop, pad, flip, mean, std)
    return made


def variants(changed, pixels):
    """What a random change may make of an image: {(top, left, flip): pixels}."""
    (channels, height, width), crop, pad, flip, mean, std = changed
    to = (crop, crop) if crop else (height, width)
    tops = range(-pad, height + pad - crop + 1) if crop else [0]
    lefts = range(-pad, width + pad - crop + 1) if crop else [0]
    found = {}
    for top in tops:
        for left in lefts:
            image = [[[pixels[(c * height + y) * width + x] if 0 <= y < height and 0 <= x < width else 0
                       for x in range(left, left + to[1])] for y in range(top, top + to[0])] for c in range(channels)]
            if mean:
                image = [[[f32(f32(x - f32(mean[c])) / f32(std[c])) for x in line] for line in image[c]] for c in range(channels)]
            for turned in (0, 1) if flip else (0,):
                found[top, left, turned] = [x for plane in image for line in plane for x in (line[::-1] if turned else line)]
    return found


def mix(parts, weights):
    """`samples` are those of an epoch."""
    longest = max(len(p.samples) / w for p, w in zip(parts, weights))
    samples = []
    for part, weight in zip(parts, weights):
        length = max(len(part.samples), math.floor(weight * longest + 0.5))
        samples += [part.samples[i % len(part.samples)] for i in range(length)]
    text = f"data.mix({{ {', '.join(p.lua for p in parts)} }}, {lua(weights)})"
    files = {name: bytes_ for p in parts for name, bytes_ in p.files.items()}
    return Data(text, parts[0].fields, samples, files, None, parts[0].window)


def source(dice, name):
    make = dice.choice([arrays, arrays, image_arrays, image_arrays, csv, csv, tokens, tokens, text, idx, cifar, images])
    if make is tokens and dice.chance(0.4):
        length, kind = 1 + dice.below(4), dice.choice(["u16", "u32"])
        return mixed(dice, [tokens(dice, f"{name}{i}", length, kind) for i in range(2 + dice.below(2))])
    if make is arrays and dice.chance(0.4):
        fields = {"a": (dice.choice(list(CODES)), [1 + dice.below(3)]), "id": ("i64", [])}
        return mixed(dice, [arrays(dice, f"{name}{i}", fields) for i in range(2 + dice.below(2))])
    return make(dice, name)


def mixed(dice, parts):
    parts = [(dice.chance(0.3) and split(dice, p)) or p for p in parts]
    return mix(parts, [dice.choice([0.5, 1, 2, 0.3, 3]) for _ in parts])


def random_data(dice, name="d"):
    data = source(dice, name)
    for _ in range(dice.below(4)):
        change = dice.choice([split, shard, augment, augment])
        if change is split and data.window and data.tokens is None:
            continue
        data = change(dice, data) or data
    return data
