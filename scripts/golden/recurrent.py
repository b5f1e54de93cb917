"""RNN, LSTM and LSTMUnit by elementary operations in PyTorch float64 and autograd; see layers.py.

If no sequence starts or ends in the middle, torch.nn must compute the same numbers.
"""

import numpy as np
import torch

from layers import case, layer, write_all

T, N, D, H, S = 4, 3, 5, 2, 3
CONT = np.array([[0, 1, 0], [1, 1, 1], [1, 0, 1], [1, 1, 0]])  # sequences may start before the batch


def lstm_cell(c, gates, cont):
    i, f, o, g = gates.chunk(4, -1)
    c = cont * f.sigmoid() * c + i.sigmoid() * g.tanh()
    return c, o.sigmoid() * c.tanh()


def lstm(x, cont, static, h, c, weights):
    wx, b, wh = weights[0], weights[1], weights[-1]
    ys = []
    for t in range(x.shape[0]):
        go_on = cont[t][:, None].detach()
        gates = x[t].flatten(1) @ wx.T + b + (go_on * h) @ wh.T
        if static is not None:
            gates = gates + static.flatten(1) @ weights[2].T
        c, h = lstm_cell(c, gates, go_on)
        ys.append(h)
    return torch.stack(ys), h[None], c[None]


def rnn(x, cont, static, h, weights):
    wx, b, wh, wo, bo = weights[0], weights[1], *weights[-3:]
    ys = []
    for t in range(x.shape[0]):
        go_on = cont[t][:, None].detach()
        sums = x[t].flatten(1) @ wx.T + b + (go_on * h) @ wh.T
        if static is not None:
            sums = sums + static.flatten(1) @ weights[2].T
        h = sums.tanh()
        ys.append((h @ wo.T + bo).tanh())
    return torch.stack(ys), h[None]


def sequences(kind, states, gates, tail):
    """Cases of one type; `tail` holds the shapes of the parameters after W_h."""
    network = lstm if kind == "LSTM" else rnn
    zero = [torch.zeros(N, H, dtype=torch.float64)] * states
    for name, shape, static, exposed in (("plain", (T, N, D), None, False),
                                         ("static", (T, N, D), (N, S), False),
                                         ("exposed", (T, N, D), None, True),
                                         ("exposed_static", (T, N, D), (N, S), True),
                                         ("images", (T, N, 2, 3), (N, 2, 1, 2), False)):
        def function(*args, static=static, exposed=exposed):
            args = list(args)
            x, cont = args.pop(0), args.pop(0)
            fixed = args.pop(0) if static else None
            start = [args.pop(0)[0] for _ in range(states)] if exposed else zero
            out = network(x, cont, fixed, *start, args)
            return out if exposed else out[0]

        g = gates * H
        params = [(g, int(np.prod(shape[2:]))), (g,)]
        params += [(g, int(np.prod(static[1:])))] if static else []
        inputs = [shape, CONT] + ([static] if static else []) + [(1, N, H)] * states * exposed
        fields = f"num_output: {H}" + " expose_hidden: true" * exposed
        case(kind.lower(), name, layer(kind, "recurrent_param", fields), inputs, function,
             params + [(g, H)] + tail, still=(1,))


def check_against_torch():
    torch.manual_seed(1)
    x, h, c = torch.randn(T, N, D), torch.randn(1, N, H), torch.randn(1, N, H)
    on = torch.ones(T, N)
    net = torch.nn.LSTM(D, H)
    order = lambda w: torch.cat([w.chunk(4)[k] for k in (0, 1, 3, 2)])  # PyTorch: i, f, g, o
    wx, wh, bx, bh = [order(p.detach()) for p in net.parameters()]
    y, (h_end, c_end) = net(x, (h, c))
    ours = lstm(x, on, None, h[0], c[0], [wx, bx + bh, wh])
    for theirs, mine in zip((y, h_end, c_end), ours):
        assert torch.allclose(theirs, mine, atol=1e-6)
    net = torch.nn.RNN(D, H)
    wx, wh, bx, bh = [p.detach() for p in net.parameters()]
    hidden, h_end = net(x, h)
    wo, bo = torch.randn(H, H), torch.randn(H)
    mine = rnn(x, on, None, h[0], [wx, bx + bh, wh, wo, bo])
    assert torch.allclose((hidden @ wo.T + bo).tanh(), mine[0], atol=1e-6)
    assert torch.allclose(h_end, mine[1], atol=1e-6)


def main():
    check_against_torch()
    sequences("LSTM", 2, 4, [])
    sequences("RNN", 1, 1, [(H, H), (H,)])
    case("lstm_unit", "plain", layer("LSTMUnit"), [(1, N, H), (1, N, 4 * H), CONT[:1]],
         lambda c, gates, cont: lstm_cell(c, gates, cont.detach()[..., None]), still=(2,))
    write_all()


if __name__ == "__main__":
    main()
