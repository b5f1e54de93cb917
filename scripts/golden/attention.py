"""MatMul and MultiHeadAttention by PyTorch float64, see layers.py, and twenty SGD iterations of
models/vit_tiny, see nets.py.
"""

import numpy as np
import torch
import torch.nn.functional as F

from golden_file import GoldenFile, grid
from layers import case, layer, write_all
from nets import Case

WIDTH, HEADS, BLOCKS = 192, 3, 12


def products():
    for name, fields, a, b in (
            ("matrices", "", (3, 4), (4, 2)), ("items", "", (2, 3, 4), (2, 4, 5)),
            ("transpose_a", "transpose_a: true", (2, 4, 3), (2, 4, 5)),
            ("transpose_b", "transpose_b: true", (2, 3, 4), (2, 5, 4)),
            ("transpose_both", "transpose_a: true transpose_b: true", (2, 4, 3), (2, 5, 4)),
            ("images", "transpose_b: true", (2, 3, 4, 2), (2, 3, 5, 2)),
            ("five_axes", "", (2, 1, 2, 3, 2), (2, 1, 2, 2, 3))):
        def product(x, y, left="_a" in fields, right="_b" in fields):
            x = x.transpose(-1, -2) if left else x
            return x @ (y.transpose(-1, -2) if right else y)

        case("matmul", name, layer("MatMul", "matmul_param", fields), [a, b], product)


def attention(x, *params, heads, causal):
    """Returns self-attention of x by torch.nn.MultiheadAttention with these parameters."""
    w_in, b_in, w_out, b_out = params if len(params) == 4 else (params[0], None, params[1], None)
    length, channels = x.shape[1:]
    mask = torch.full((length, length), -torch.inf, dtype=x.dtype).triu(1) if causal else None
    sequence_first = x.transpose(0, 1)
    y, _ = F.multi_head_attention_forward(
        sequence_first, sequence_first, sequence_first, channels, heads, w_in, b_in, None, None,
        False, 0, w_out, b_out, need_weights=False, attn_mask=mask)
    return y.transpose(0, 1)


def heads():
    rng = np.random.default_rng(12)
    for name, fields, shape, bias in (
            ("heads", "num_heads: 2", (2, 5, 8), True),
            ("causal", "num_heads: 4 causal: true", (2, 7, 8), True),
            ("no_bias", "num_heads: 3 bias_term: false", (2, 4, 6), False),
            ("one_position", "num_heads: 1", (3, 1, 4), True)):
        c = shape[2]
        weights = [grid(rng, 3 * c, c) / 4, grid(rng, 3 * c) / 4, grid(rng, c, c) / 4, grid(rng, c)]
        case("multi_head_attention", name, layer("MultiHeadAttention", "attention_param", fields),
             [shape],
             lambda *args, h=int(fields.split()[1]), causal="causal" in fields:
             attention(*args, heads=h, causal=causal),
             weights if bias else weights[::2])


def vit(net, x, y):
    """The TRAIN net of models/vit_tiny."""
    params = iter(net.params)
    norm = lambda x: F.layer_norm(x, (WIDTH,), next(params), next(params))
    product = lambda x: F.linear(x, next(params), next(params))
    x = F.conv2d(x, next(params), next(params), stride=4).flatten(2).transpose(1, 2) + next(params)
    for _ in range(BLOCKS):
        inner = norm(x)
        own = [next(params) for _ in range(4)]
        x = x + attention(inner, *own, heads=HEADS, causal=False)
        x = x + product(F.gelu(product(norm(x))))
    return F.cross_entropy(product(norm(x).mean(1)), y)


def vit_case():
    net = Case("vit_tiny", vit, (3, 32, 32), 10, 2, scale=1 / 64, mean=True, base_lr=2e-4,
               weight_decay=0.05)
    net.extra = {"in_order": 1}

    def learn(shape, decay, center=0):
        value = torch.empty(shape, dtype=torch.float64, requires_grad=True)
        net.learn(value, 1, decay, bound=0.02 if decay == 0 and len(shape) == 2 else None,
                  center=center)

    def norm():
        learn((WIDTH,), 0, center=1)
        learn((WIDTH,), 0)

    def product(outputs, inputs):
        learn((outputs, *inputs), 1)
        learn((outputs,), 0)

    product(WIDTH, (3, 4, 4))
    learn((64, WIDTH), 0)
    for _ in range(BLOCKS):
        norm()
        product(3 * WIDTH, (WIDTH,))
        product(WIDTH, (WIDTH,))
        norm()
        product(4 * WIDTH, (WIDTH,))
        product(WIDTH, (4 * WIDTH,))
    norm()
    product(10, (WIDTH,))
    return net


def whole_net():
    torch.set_num_threads(1)
    out = GoldenFile("big_net_vit_tiny.txt", "none (integer hash)",
                     "Losses of 20 SGD iterations of vit_tiny, and sums of the weights after them.")
    vit_case().write(out)
    out.save()


def main():
    products()
    heads()
    write_all()
    whole_net()


if __name__ == "__main__":
    main()
