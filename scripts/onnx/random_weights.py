"""Random weights and inputs for nets, in Caffe's files."""

import importlib
import json
import shutil
import subprocess
import sys

import numpy as np
from google.protobuf import text_format


class Protos:
    """The messages of the folder proto/, compiled by protoc."""

    def __init__(self, protos, folder):
        if shutil.which("protoc") is None:
            raise ImportError("protoc is not installed")
        out = folder / "python"
        out.mkdir(exist_ok=True)
        subprocess.run(["protoc", f"--python_out={out}", f"-I{protos}",
                        *sorted(map(str, protos.glob("*.proto")))], check=True)
        sys.path.insert(0, str(out))
        self.module = importlib.import_module("net_pb2")

    def net(self, text):
        return text_format.Parse(text, self.module.NetParameter())

    def text(self, net):
        return text_format.MessageToString(net)


def spread(values, default, axes):
    return list(values) * axes if len(values) == 1 else list(values) or [default] * axes


def convolution_shapes(layer, shape, transposed):
    param = layer.convolution_param
    axis = param.axis % len(shape)
    axes = len(shape) - axis - 1
    kernel = [param.kernel_h, param.kernel_w] if param.HasField("kernel_h") else \
        spread(param.kernel_size, 1, axes)
    depthwise = layer.type in ("ConvolutionDepthwise", "DepthwiseConvolution")
    inputs = shape[axis]
    outputs = inputs if depthwise else param.num_output
    group = inputs if depthwise else param.group
    first = [inputs, outputs // group] if transposed else [outputs, inputs // group]
    return [first + kernel] + ([[outputs]] if param.bias_term else [])


def inner_product_shapes(layer, shape):
    param = layer.inner_product_param
    inputs = int(np.prod(shape[param.axis % len(shape):]))
    weight = [inputs, param.num_output] if param.transpose else [param.num_output, inputs]
    return [weight] + ([[param.num_output]] if param.bias_term else [])


def recurrent_shapes(layer, shapes):
    width, gates = layer.recurrent_param.num_output, 4 if layer.type == "LSTM" else 1
    states = (2 if layer.type == "LSTM" else 1) if layer.recurrent_param.expose_hidden else 0
    found = [[gates * width, int(np.prod(shapes[0][2:]))], [gates * width]]
    if len(shapes) - states == 3:
        found.append([gates * width, int(np.prod(shapes[2][1:]))])
    found.append([gates * width, width])
    return found + ([[width, width], [width]] if layer.type == "RNN" else [])


def affine_shapes(layer, shapes):
    param = layer.scale_param if layer.type == "Scale" else layer.bias_param
    axis = param.axis % len(shapes[0])
    end = len(shapes[0]) if param.num_axes == -1 else axis + param.num_axes
    learned = shapes[0][axis:end] if len(shapes) == 1 else shapes[1]
    count = (1 if len(shapes) == 1 else 0) + (layer.type == "Scale" and param.bias_term)
    return [learned] * count


def parameter_shapes(layer, shapes):
    """Returns the shapes of a layer's parameters, for bottoms of these shapes."""
    kind, first = layer.type, shapes[0] if shapes else []
    if kind in ("Convolution", "ConvolutionDepthwise", "DepthwiseConvolution"):
        return convolution_shapes(layer, first, False)
    if kind == "Deconvolution":
        return convolution_shapes(layer, first, True)
    if kind == "InnerProduct":
        return inner_product_shapes(layer, first)
    if kind in ("LSTM", "RNN"):
        return recurrent_shapes(layer, shapes)
    if kind in ("Scale", "Bias"):
        return affine_shapes(layer, shapes)
    if kind == "BatchNorm":
        own = [[first[1]], [first[1]], [1]]
        return own + ([[first[1]]] * 2 if layer.batch_norm_param.scale_bias else [])
    if kind == "GroupNorm":
        return [[first[1]]] * 2 if layer.group_norm_param.scale_bias else []
    if kind == "LayerNorm":
        param = layer.layer_norm_param
        return [first[param.axis % len(first):]] * 2 if param.scale_bias else []
    if kind == "PReLU":
        return [[]] if layer.prelu_param.channel_shared else [[first[1]]]
    if kind == "Normalize":
        return [[]] if layer.norm_param.channel_shared else [[first[1]]]
    if kind == "Embed":
        param = layer.embed_param
        rows = [[param.input_dim, param.num_output]]
        return rows + ([[param.num_output]] if param.bias_term else [])
    if kind == "MultiHeadAttention":
        c = first[2]
        bias = layer.attention_param.bias_term
        return [[3 * c, c]] + [[3 * c]] * bias + [[c, c]] + [[c]] * bias
    if kind == "Parameter":
        return [list(layer.parameter_param.shape.dim)]
    if kind == "RBM":
        param, inputs = layer.rbm_param, int(np.prod(first[1:]))
        visible, hidden = inputs, param.num_output
        if param.output == param.VISIBLE:
            visible, hidden = param.num_visible, inputs
        return [[hidden, visible], [hidden], [visible]]
    return []


def parameter_values(kind, index, shape, rng):
    """Returns parameter values that keep the values of a net near 1."""
    count = max(1, int(np.prod(shape)))
    if kind == "BatchNorm":
        if index == 2:
            return np.array([0.5])  # the stored sums have this weight
        if index == 1:
            return rng.uniform(0.3, 1.0, count)
        return rng.uniform(0.5, 1.5, count) if index == 3 else rng.normal(0, 0.3, count)
    if kind in ("Scale", "Normalize") or (kind in ("GroupNorm", "LayerNorm") and index == 0):
        return rng.uniform(0.5, 1.5, count)
    if kind == "PReLU":
        return rng.uniform(0.1, 0.4, count)
    if len(shape) < 2 or kind in ("Embed", "Parameter"):
        return rng.normal(0, 0.3, count)
    inputs = int(np.prod(shape[1:])) if kind != "Deconvolution" else int(shape[0])
    return rng.normal(0, np.sqrt(2.0 / inputs), count)


def random_weights(protos, net, shown, rng):
    """Returns the bytes of a caffemodel. `shown` is the output of `trainer show --json`."""
    shapes, made = {}, protos.module.NetParameter(name=net.name)
    outputs = {layer["name"]: layer["outputs"] for layer in json.loads(shown)["layers"]}
    for layer in net.layer:
        bottoms = [shapes[bottom] for bottom in layer.bottom]
        found = parameter_shapes(layer, bottoms)
        for output in outputs.get(layer.name, []):
            shapes[output["name"]] = output["shape"]
        if not found:
            continue
        stored = made.layer.add(name=layer.name, type=layer.type)
        for index, shape in enumerate(found):
            blob = stored.blobs.add()
            blob.shape.dim.extend(shape)
            values = parameter_values(layer.type, index, shape, rng)
            blob.data.extend(values.astype(np.float32).tolist())
    return made.SerializeToString()


def takes_negative_numbers(layer):
    stochastic = layer.pooling_param.pool == layer.pooling_param.STOCHASTIC
    return layer.type not in ("Log", "Power", "RBM") and not stochastic


def random_inputs(net, integers, rng):
    """Returns values for the Input layers. `integers` maps integer inputs to their exclusive limit.
    Inputs called rois are boxes (image, x1, y1, x2, y2) in images of the first input."""
    least = -1 if all(map(takes_negative_numbers, net.layer)) else 0
    inputs = {}
    for layer in net.layer:
        if layer.type != "Input":
            continue
        for i, top in enumerate(layer.top):
            shapes = layer.input_param.shape
            dims = list(shapes[i if len(shapes) > 1 else 0].dim)
            values = rng.uniform(least, 1, dims)
            if top in integers:
                values = rng.integers(0, integers[top], dims)
            if top == "rois":
                values = random_boxes(dims[0], next(iter(inputs.values())).shape, rng)
            inputs[top] = np.asarray(values, np.float32)
    return inputs


def random_boxes(count, image, rng):
    ends = np.sort(rng.uniform(-3, 2 * max(image[2:]) + 3, (count, 2, 2)), axis=2)
    items = rng.integers(0, image[0], (count, 1))
    return np.hstack([items, ends[:, :, 0], ends[:, :, 1]])
