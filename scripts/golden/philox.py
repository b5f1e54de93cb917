"""The random choices of trainer, from its own definition: include/trainer/base/random/philox.h."""

import numpy as np

WORD = np.uint64(0xFFFFFFFF)


def stream_of(layer):
    """StreamOf(layer, TRAIN): the stream of a layer's numbers, FNV-1a of its name."""
    value = 2166136261
    for byte in layer.encode():
        value = (value ^ byte) * 16777619 & 0xFFFFFFFF
    return value * 16777619 & 0xFFFFFFFF


def philox_blocks(seed, stream, step, blocks):
    """Philox4x32-10: four words (n, 4) for each of `blocks` in pass `step`."""
    blocks = np.asarray(blocks, np.uint64)
    c = [blocks & WORD, blocks >> np.uint64(32), np.full_like(blocks, step),
         np.full_like(blocks, stream)]
    k = [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        p = [np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]]
        c = [(p[1] >> np.uint64(32)) ^ c[1] ^ np.uint64(k[0]), p[1] & WORD,
             (p[0] >> np.uint64(32)) ^ c[3] ^ np.uint64(k[1]), p[0] & WORD]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return np.stack(c, axis=1)


def dropout_mask(seed, layer, step, count, ratio):
    """Which of `count` values a Dropout keeps."""
    words = philox_blocks(seed, stream_of(layer), step, np.arange(-(-count // 4)))
    threshold = int(np.float64(np.float32(ratio)) * 2**31 + 0.5) * 2
    return words.ravel()[:count] >= np.uint64(threshold)


def crops(seed, layer, records, margin):
    """(mirror, top, left) of each record whose sides exceed the crop by `margin`."""
    words = philox_blocks(seed, stream_of(layer), 0, records)
    places = words[:, 1:3] * np.uint64(margin + 1) >> np.uint64(32)
    return [(bool(word[0] >> np.uint64(31)), int(top), int(left))
            for word, (top, left) in zip(words, places)]


def permutation(seed, stream, step, first, count):
    """A random order of 0 .. count - 1: include/trainer/base/random/permutation.h."""
    words = philox_blocks(seed, stream, step, np.arange(first // 4, (first + count) // 4 + 1))
    words, skipped = words.ravel(), first // 4 * 4
    order = list(range(count))
    for i in range(count - 1, 0, -1):
        other = int(words[first + i - skipped]) * (i + 1) >> 32
        order[i], order[other] = order[other], order[i]
    return order


def permuted_at(seed, stream, step, domain, count, at):
    """PermutedAt of include/trainer/base/random/permutation.h: element `at` of an order."""
    high = int(np.ceil(np.sqrt(count)))
    low = -(-count // high)

    def draw(turn, half, n):
        block = domain << 36 | turn << 32 | half
        return int(philox_blocks(seed, stream, step, [block])[0, 0]) * n >> 32

    while True:
        a, b = divmod(at, low)
        for turn in range(0, 8, 2):
            a = (a + draw(turn, b, high)) % high
            b = (b + draw(turn + 1, a, low)) % low
        at = a * low + b
        if at < count:
            return at


def balanced_order(seed, stream, epoch, labels):
    """The records of an epoch of BalancedOrder: src/input/balanced_order.h."""
    members = {}
    for record, label in enumerate(labels):
        members.setdefault(label, []).append(record)
    classes = [members[label] for label in sorted(members)]
    largest, step = max(map(len, classes)), 0x40000000 + epoch
    order = []
    for place in range(largest * len(classes)):
        number, turn = divmod(permuted_at(seed, stream, step, 0, largest * len(classes), place),
                              largest)
        records = classes[number]
        member = turn % len(records)
        if turn >= largest // len(records) * len(records):
            member = permuted_at(seed, stream, step, number + 1, len(records), member)
        order.append(records[member])
    return order
