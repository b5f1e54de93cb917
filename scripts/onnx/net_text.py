"""Writes prototxt files of nets, layer by layer."""


def value_text(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def fields_text(fields):
    """`a: 1 b { c: 2 }` for {"a": 1, "b": {"c": 2}}; a list repeats its field. Enumerators and
    numbers are written as they are; strings need quotes of their own."""
    parts = []
    for name, value in fields.items():
        for item in value if isinstance(value, (list, tuple)) else [value]:
            if isinstance(item, dict):
                parts.append(f"{name} {{ {fields_text(item)} }}")
            else:
                parts.append(f"{name}: {value_text(item)}")
    return " ".join(parts)


class NetText:
    """A net. Methods that add a layer return the name of its first top, which is its own name."""

    def __init__(self, name, **inputs):
        self.name = name
        self.lines = [f'name: "{name}"']
        self.integers = {}  # input -> the number that its random whole numbers stay below
        for top, dims in inputs.items():
            self.layer("Input", top, [], input_param={"shape": {"dim": dims}})

    def layer(self, kind, name, bottoms, tops=None, **params):
        bottoms = [bottoms] if isinstance(bottoms, str) else bottoms
        tops = [name] if tops is None else tops
        text = [f'name: "{name}" type: "{kind}"']
        text += [f'bottom: "{bottom}"' for bottom in bottoms]
        text += [f'top: "{top}"' for top in tops]
        self.lines.append(f"layer {{ {' '.join(text)} {fields_text(params)} }}")
        return tops[0] if tops else name

    def inplace(self, kind, bottom, name=None, **params):
        return self.layer(kind, name or f"{bottom}/{kind.lower()}", bottom, [bottom], **params)

    def relu(self, bottom):
        return self.inplace("ReLU", bottom)

    def conv(self, name, bottom, outputs, kernel, relu=True, kind="Convolution", **fields):
        fields = {"num_output": outputs, "kernel_size": kernel, **fields}
        if isinstance(kernel, tuple):
            del fields["kernel_size"]
            fields["kernel_h"], fields["kernel_w"] = kernel
        self.layer(kind, name, bottom, convolution_param=fields)
        return self.relu(name) if relu else name

    def norm(self, bottom, relu=True, inplace=True):
        """BatchNorm and Scale after a layer."""
        tops = [bottom] if inplace else None
        x = self.layer("BatchNorm", f"{bottom}/bn", bottom, tops)
        tops = [x] if inplace else None
        x = self.layer("Scale", f"{bottom}/scale", x, tops, scale_param={"bias_term": True})
        return self.relu(x) if relu else x

    def conv_norm(self, name, bottom, outputs, kernel, relu=True, **fields):
        self.conv(name, bottom, outputs, kernel, relu=False, bias_term=False, **fields)
        return self.norm(name, relu)

    def pool(self, name, bottom, kernel=2, stride=2, kind="MAX", **fields):
        return self.layer("Pooling", name, bottom, pooling_param={
            "pool": kind, "kernel_size": kernel, "stride": stride, **fields})

    def global_pool(self, name, bottom, kind="AVE"):
        return self.layer("Pooling", name, bottom,
                          pooling_param={"pool": kind, "global_pooling": True})

    def fc(self, name, bottom, outputs, relu=False, **fields):
        self.layer("InnerProduct", name, bottom,
                   inner_product_param={"num_output": outputs, **fields})
        return self.relu(name) if relu else name

    def softmax(self, bottom, name="prob", **fields):
        return self.layer("Softmax", name, bottom, softmax_param=fields)

    def concat(self, name, bottoms, axis=1):
        return self.layer("Concat", name, bottoms, concat_param={"axis": axis})

    def add(self, name, bottoms, relu=False, **fields):
        self.layer("Eltwise", name, bottoms, eltwise_param=fields)
        return self.relu(name) if relu else name

    def lrn(self, name, bottom, **fields):
        return self.layer("LRN", name, bottom, lrn_param={
            "local_size": 5, "alpha": 0.0001, "beta": 0.75, **fields})

    def text(self):
        return "\n".join(self.lines) + "\n"
