"""A small net for each layer type, and for each of its forms that is exported differently."""

from net_text import NetText

IMAGE = [2, 6, 9, 8]


def one(kind, dims=IMAGE, tops=1, name=None, **params):
    """A net of one layer of this type."""
    n = NetText(name or kind, x=dims)
    n.layer(kind, "y", "x", [f"y{i}" for i in range(tops)] if tops > 1 else None, **params)
    return n


def two(kind, first, second, **params):
    n = NetText(kind, x=first, z=second)
    n.layer(kind, "y", ["x", "z"], **params)
    return n


def after_convolution(kind, **params):
    """The layer in place after a convolution, as most nets have it."""
    n = NetText(kind, x=[2, 3, 6, 7])
    n.inplace(kind, n.conv("conv", "x", 4, 3, relu=False), **params)
    return n


def norms_after_inner_product():
    n = NetText("Norms", x=[3, 2, 5])
    x = n.norm(n.fc("ip", "x", 4, transpose=True), relu=False)
    n.layer("Bias", "y", n.inplace("BatchNorm", x, batch_norm_param={"scale_bias": True}))
    return n


def pooling(**fields):
    return one("Pooling", pooling_param={"kernel_size": 3, "stride": 2, **fields})


def pooling_places():
    return one("Pooling", tops=2, pooling_param={"pool": "MAX", "kernel_size": 3, "stride": 2,
                                                 "pad": 1})


def convolution(kind="Convolution", dims=IMAGE, **fields):
    return one(kind, dims, convolution_param={"num_output": 4, "kernel_size": 3, **fields})


def reindexed():
    n = NetText("BatchReindex", x=[4, 3], z=[5])
    n.integers = {"z": 4}
    n.layer("BatchReindex", "y", ["x", "z"])
    return n


def filtered():
    n = NetText("Filter", x=[6, 3, 2, 2], z=[6, 1])
    n.integers = {"z": 2}
    n.layer("Filter", "f", ["x", "z"], ["y"])
    return n


def embed():
    n = NetText("Embed", x=[3, 4])
    n.integers = {"x": 9}
    n.layer("Embed", "y", "x", embed_param={"input_dim": 9, "num_output": 5})
    return n


def recurrent(kind, exposed=False, fixed=False, dims=(5, 3, 4)):
    inputs = {"x": list(dims), "cont": list(dims[:2])}
    if fixed:
        inputs["s"] = [dims[1], 2]
    states = ["h0", "c0"] if kind == "LSTM" else ["h0"]
    if exposed:
        inputs.update({state: [1, dims[1], 6] for state in states})
    n = NetText(kind, **inputs)
    n.integers = {"cont": 2}
    tops = ["y"] + ([f"{state}_last" for state in states] if exposed else [])
    n.layer(kind, "y", list(inputs), tops,
            recurrent_param={"num_output": 6, "expose_hidden": exposed})
    return n


def lstm_unit():
    n = NetText("LSTMUnit", c=[1, 3, 4], gates=[1, 3, 16], cont=[1, 3])
    n.integers = {"cont": 2}
    n.layer("LSTMUnit", "unit", ["c", "gates", "cont"], ["c_next", "h"])
    return n


def sliced():
    n = NetText("Slice", x=IMAGE)
    n.layer("Slice", "cut", "x", ["a", "b"], slice_param={"axis": 1, "slice_point": 2})
    n.layer("Slice", "cut_items", "x", ["c", "d"], slice_param={"axis": 0})
    return n


def constants():
    n = NetText("Parameter", x=[2, 3, 4])
    n.layer("Parameter", "w", [], parameter_param={"shape": {"dim": [3, 4]}})
    n.layer("DummyData", "d", [], dummy_data_param={
        "shape": {"dim": [3, 4]}, "data_filler": {"type": '"constant"', "value": 0.5}})
    n.layer("Bias", "y", ["x", n.add("sum", ["w", "d"])], bias_param={"axis": 1})
    return n


def regions(kind, **params):
    n = NetText(kind, x=[2, 18, 9, 8], rois=[4, 5])
    n.layer(kind, "y", ["x", "rois"], **params)
    return n


def kept_inside():
    """Two readers of one blob, an in-place change of an input, and a blob without readers."""
    n = NetText("Names", x=[2, 3, 6, 6])
    n.inplace("Power", "x", power_param={"scale": 2, "shift": -1})
    a = n.conv("a", "x", 4, 3)
    n.layer("Dropout", "b", a)
    n.pool("c", a)
    return n


LAYER_NETS = {
    "AbsVal": lambda: one("AbsVal"),
    "ArgMax": lambda: one("ArgMax"),
    "ArgMax_values": lambda: one("ArgMax", argmax_param={"top_k": 3, "out_max_val": True}),
    "ArgMax_axis": lambda: one("ArgMax", argmax_param={"top_k": 2, "axis": 1}),
    "ArgMax_axis_values": lambda: one("ArgMax", argmax_param={"axis": -1, "out_max_val": True}),
    "BNLL": lambda: one("BNLL"),
    "BatchNorm": lambda: one("BatchNorm"),
    "BatchNorm_folded": lambda: after_convolution("BatchNorm"),
    "BatchNorm_of_batch": lambda: one("BatchNorm", batch_norm_param={"use_global_stats": False}),
    "BatchNorm_nvidia": lambda: one("BatchNorm", [3, 5], batch_norm_param={"scale_bias": True}),
    "BatchNorm_folded_rows": norms_after_inner_product,
    "BatchReindex": reindexed,
    "Bias": lambda: one("Bias", bias_param={"axis": 2, "num_axes": 2}),
    "Bias_folded": lambda: after_convolution("Bias"),
    "Bias_two": lambda: two("Bias", IMAGE, [2, 6], bias_param={"axis": 0}),
    "Clip": lambda: one("Clip", clip_param={"min": 0.2, "max": 0.7}),
    "Concat": lambda: two("Concat", [2, 3, 4], [2, 5, 4]),
    "Concat_items": lambda: two("Concat", [2, 3], [2, 3], concat_param={"axis": 0}),
    "Convolution": convolution,
    "Convolution_dilated": lambda: convolution(dilation=2, pad=[2, 1], group=2, stride=[1, 2]),
    "Convolution_rows": lambda: convolution(dims=[2, 6], kernel_size=[]),
    "Convolution_1d": lambda: convolution(dims=[2, 6, 11]),
    "Convolution_axis": lambda: convolution(dims=[2, 3, 6, 9, 8], axis=2),
    "ConvolutionDepthwise": lambda: one("ConvolutionDepthwise",
                                        convolution_param={"kernel_size": 3, "pad": 1}),
    "Crop": lambda: two("Crop", IMAGE, [2, 5, 4, 3], crop_param={"axis": 1, "offset": [1, 2, 3]}),
    "Crop_items": lambda: two("Crop", [4, 3], [4, 2], crop_param={"axis": 0}),
    "Deconvolution": lambda: convolution("Deconvolution", stride=2, pad=1, group=2),
    "Deconvolution_1d": lambda: convolution("Deconvolution", [2, 6, 7], stride=3),
    "Deconvolution_folded": lambda: folded_deconvolution(),
    "DepthwiseConvolution": lambda: one("DepthwiseConvolution",
                                        convolution_param={"kernel_size": 2, "stride": 2}),
    "DropPath": lambda: after_convolution("DropPath"),
    "Dropout": lambda: after_convolution("Dropout"),
    "ELU": lambda: one("ELU", elu_param={"alpha": 0.7, "lambda": 1.1}),
    "Eltwise_coefficients": lambda: two("Eltwise", IMAGE, IMAGE,
                                        eltwise_param={"coeff": [0.5, -2]}),
    "Eltwise_max": lambda: two("Eltwise", IMAGE, IMAGE, eltwise_param={"operation": "MAX"}),
    "Eltwise_product": lambda: two("Eltwise", IMAGE, IMAGE, eltwise_param={"operation": "PROD"}),
    "Embed": embed,
    "Exp": lambda: one("Exp", exp_param={"base": 2, "scale": 0.5, "shift": 1}),
    "Filter": filtered,
    "Flatten": lambda: one("Flatten"),
    "Flatten_axes": lambda: one("Flatten", flatten_param={"axis": 2, "end_axis": 3}),
    "Flatten_all": lambda: one("Flatten", flatten_param={"axis": 0}),
    "GELU": lambda: one("GELU"),
    "GELU_tanh": lambda: one("GELU", gelu_param={"approximate": True}),
    "Gram": lambda: one("Gram"),
    "GroupNorm": lambda: one("GroupNorm", group_norm_param={"groups": 3}),
    "HardSwish": lambda: one("HardSwish"),
    "Im2col": lambda: convolution("Im2col", stride=2, pad=1),
    "InnerProduct": lambda: one("InnerProduct", inner_product_param={"num_output": 5}),
    "InnerProduct_axis": lambda: one("InnerProduct",
                                     inner_product_param={"num_output": 5, "axis": 2}),
    "InnerProduct_items": lambda: one("InnerProduct", [2, 3, 4],
                                      inner_product_param={"num_output": 5, "axis": 0}),
    "InnerProduct_transposed": lambda: one("InnerProduct", inner_product_param={
        "num_output": 5, "transpose": True, "bias_term": False}),
    "Interp": lambda: one("Interp", interp_param={"height": 13, "width": 5}),
    "Interp_cut": lambda: one("Interp", interp_param={"zoom_factor": 3, "pad_beg": -2,
                                                      "pad_end": -1}),
    "LRN": lambda: one("LRN", lrn_param={"local_size": 3, "alpha": 0.5, "k": 2}),
    "LRN_within": lambda: one("LRN", lrn_param={"local_size": 5, "alpha": 0.5,
                                                "norm_region": "WITHIN_CHANNEL"}),
    "LSTM": lambda: recurrent("LSTM"),
    "LSTM_exposed": lambda: recurrent("LSTM", exposed=True),
    "LSTM_static": lambda: recurrent("LSTM", fixed=True, dims=(4, 2, 3, 2, 2)),
    "LSTMUnit": lstm_unit,
    "LayerNorm": lambda: one("LayerNorm", [2, 5, 6], layer_norm_param={"axis": 2}),
    "LayerNorm_plain": lambda: one("LayerNorm", layer_norm_param={"scale_bias": False}),
    "Log": lambda: one("Log", log_param={"base": 10, "scale": 2, "shift": 0.5}),
    "MVN": lambda: one("MVN"),
    "MVN_mean": lambda: one("MVN", mvn_param={"normalize_variance": False,
                                              "across_channels": True}),
    "MatMul": lambda: two("MatMul", [2, 3, 4, 5], [2, 3, 6, 5],
                          matmul_param={"transpose_b": True}),
    "Mish": lambda: one("Mish"),
    "MultiHeadAttention": lambda: one("MultiHeadAttention", [2, 7, 12],
                                      attention_param={"num_heads": 3}),
    "MultiHeadAttention_causal": lambda: one("MultiHeadAttention", [2, 7, 12], attention_param={
        "num_heads": 2, "causal": True, "bias_term": False}),
    "Noise": lambda: one("Noise"),
    "Normalize": lambda: one("Normalize"),
    "Normalize_pixels": lambda: one("Normalize", norm_param={"across_spatial": False,
                                                             "channel_shared": False}),
    "PReLU": lambda: one("PReLU"),
    "PReLU_shared": lambda: one("PReLU", [3, 5], prelu_param={"channel_shared": True}),
    "PSROIPooling": lambda: regions("PSROIPooling", psroi_pooling_param={
        "spatial_scale": 0.5, "output_dim": 2, "group_size": 3}),
    "Parameter": constants,
    "Permute": lambda: one("Permute", permute_param={"order": [0, 2]}),
    "Pooling_max": pooling,
    "Pooling_max_padded": lambda: pooling(pad=1),
    "Pooling_places": pooling_places,
    "Pooling_average": lambda: pooling(pool="AVE"),
    "Pooling_average_padded": lambda: pooling(pool="AVE", pad=1, kernel_size=4, stride=3),
    "Pooling_average_uneven": lambda: one("Pooling", [2, 3, 8, 9], pooling_param={
        "pool": "AVE", "kernel_h": 3, "kernel_w": 2, "stride_h": 3, "stride_w": 2, "pad_h": 1,
        "pad_w": 0}),
    "Pooling_average_floor": lambda: pooling(pool="AVE", pad=1, round_mode="FLOOR"),
    "Pooling_stochastic": lambda: pooling(pool="STOCHASTIC"),
    "Pooling_global": lambda: one("Pooling", pooling_param={"global_pooling": True}),
    "Power": lambda: one("Power", power_param={"power": 1.5, "scale": 2, "shift": 0.5}),
    "RBM": lambda: one("RBM", rbm_param={"num_output": 5}),
    "RBM_visible": lambda: one("RBM", [3, 5], rbm_param={
        "output": "VISIBLE", "num_visible": 7, "visible": "GAUSSIAN"}),
    "RNN": lambda: recurrent("RNN"),
    "RNN_exposed": lambda: recurrent("RNN", exposed=True, fixed=True),
    "ROIPooling": lambda: regions("ROIPooling", roi_pooling_param={
        "pooled_h": 2, "pooled_w": 3, "spatial_scale": 0.5}),
    "ReLU": lambda: one("ReLU", relu_param={"negative_slope": 0.3}),
    "Reduction_mean": lambda: one("Reduction", reduction_param={"operation": "MEAN", "axis": 1}),
    "Reduction_squares": lambda: one("Reduction", reduction_param={
        "operation": "SUMSQ", "axis": -1, "coeff": 0.5}),
    "Reduction_absolute": lambda: one("Reduction", reduction_param={"operation": "ASUM",
                                                                    "axis": 2}),
    "Reorg": lambda: one("Reorg", [2, 8, 4, 6], reorg_param={"stride": 2}),
    "Reorg_reverse": lambda: one("Reorg", [2, 8, 4, 6],
                                 reorg_param={"stride": 2, "reverse": True}),
    "Reshape": lambda: one("Reshape", reshape_param={"shape": {"dim": [0, 2, 3, -1]}}),
    "Reshape_items": lambda: one("Reshape", reshape_param={"shape": {"dim": [-1, 72]}}),
    "SPP": lambda: one("SPP", spp_param={"pyramid_height": 3, "pool": "AVE"}),
    "Scale": lambda: one("Scale", scale_param={"axis": 1, "num_axes": 2, "bias_term": True}),
    "Scale_folded": lambda: after_convolution("Scale", scale_param={"bias_term": True}),
    "Scale_two": lambda: two("Scale", IMAGE, [2, 6], scale_param={"axis": 0}),
    "SiLU": lambda: one("SiLU"),
    "Sigmoid": lambda: one("Sigmoid"),
    "Slice": sliced,
    "Softmax": lambda: one("Softmax", softmax_param={"axis": 2}),
    "Split": kept_inside,
    "Swish": lambda: one("Swish", swish_param={"beta": 1.5}),
    "TanH": lambda: one("TanH"),
    "Threshold": lambda: one("Threshold", threshold_param={"threshold": 0.4}),
    "Tile": lambda: one("Tile", tile_param={"axis": 2, "tiles": 3}),
}


def folded_deconvolution():
    n = NetText("Deconvolution", x=[2, 6, 4, 5])
    x = n.conv("up", "x", 8, 3, kind="Deconvolution", group=2, relu=False, bias_term=False)
    n.norm(x)
    return n
