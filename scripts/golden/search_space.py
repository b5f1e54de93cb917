#!/usr/bin/env python3
"""Prints the trials in tests/run/search_space_test.cc, from the definition of a random search:

a value is at position u of its range, where u are the first two words of Philox with the seed, the
CRC32C of the key as stream and the number of the trial as pass.
"""

import math

from philox import philox_blocks


def crc32c(text):
    crc = 0xFFFFFFFF
    for byte in text.encode():
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def position(seed, key, number):
    words = [int(word) for word in philox_blocks(seed, crc32c(key), number, [0])[0]]
    return (words[0] + words[1] / 2**32) / 2**32


def logarithmic(u, low, high):
    return float(f"{low * (high / low)**u:.3e}")


def uniform(u, low, high):
    unit = 10**math.floor(math.log10((high - low) / 1000))
    return round((low + u * (high - low)) / unit) * unit


for trial in range(1, 6):
    lr, momentum, size, batch = (position(2, key, trial)
                                 for key in ("base_lr", "momentum", "iter_size", "batch"))
    print(f"base_lr={logarithmic(lr, 1e-4, 1e-1):g} momentum={uniform(momentum, 0.8, 0.99):.7g} "
          f"iter_size={1 + math.floor(4 * size)} batch={(32, 64)[math.floor(2 * batch)]}")
