#!/usr/bin/env python3
"""Writes docs/reference/layers.md and docs/reference/solver.md from what the program knows.

    make_reference.py TRAINER           writes both pages
    make_reference.py TRAINER --check   fails if a page differs from what it would write

The texts come from `trainer layers --json` and `trainer solver --json`.
"""

import json
import pathlib
import re
import subprocess
import sys

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "docs/reference"
NOTE = "<!-- Written by scripts/make_reference.py: do not change it by hand. -->\n\n"

GROUPS = {
    "Data and inputs": "Data ImageData HDF5Data MemoryData WindowData DummyData Input Parameter",
    "Layers with weights": "Convolution Deconvolution ConvolutionDepthwise DepthwiseConvolution "
                           "InnerProduct Embed Scale Bias RBM",
    "Sequences": "RNN LSTM LSTMUnit MultiHeadAttention MatMul",
    "Normalisation": "BatchNorm LayerNorm GroupNorm LRN MVN Normalize",
    "Activations": "ReLU PReLU ELU GELU SiLU Swish HardSwish Mish Sigmoid TanH Softmax AbsVal BNLL "
                   "Clip Exp Log Power Threshold",
    "Pooling and regions": "Pooling SPP ROIPooling PSROIPooling",
    "Noise in training": "Dropout DropPath Noise",
    "Shapes and copies": "Concat Slice Split Eltwise Flatten Reshape Permute Tile Crop Interp Reorg "
                         "Im2col Reduction ArgMax BatchReindex Filter Silence Gram",
    "Losses": "SoftmaxWithLoss SigmoidCrossEntropyLoss SoftmaxFocalLoss SigmoidFocalLoss "
              "KLDivergenceLoss EuclideanLoss L1Loss SmoothL1Loss DiceLoss HingeLoss InfogainLoss "
              "MultinomialLogisticLoss ContrastiveLoss TotalVariationLoss",
    "Scores, files and detection": "Accuracy HDF5Output PriorBox DetectionOutput",
}
FIELDS = set()  # names of all fields
# Messages that only weights or files of old programs contain, or that have their own section.
LEFT_OUT = {"BlobProto", "BlobShape", "V1LayerParameter", "LayerParameter", "NetParameter"}

SOLVER_GROUPS = {
    "Nets": "net net_param train_net train_net_param test_net test_net_param train_state test_state "
            "weights unfreeze_at default_forward_type",
    "Length, log and seed": "max_iter max_epoch iter_size display average_loss debug_info "
                            "random_seed solver_mode device_id",
    "Learning rate": "base_lr lr_policy gamma power stepsize stepvalue stepvalue_epoch "
                     "plateau_winsize min_lr "
                     "warmup_iter warmup_lr warmup_start_lr rampup_interval rampup_lr",
    "Fields of update rules": "type momentum momentum2 rms_decay delta momentum_policy max_momentum "
                   "momentum_power momentum_stepvalue momentum_value trust_coefficient larc "
                   "larc_policy larc_eta cd_param lbfgs_param",
    "Regularisation and averages": "weight_decay regularization_type weight_decay_policy "
                                   "weight_decay_power max_weight_decay decay_on_bias_and_norm clip_gradients "
                                   "clip_value ema_decay",
    "Tests and early stop": "test_iter test_interval test_interval_epoch test_initialization "
                            "test_compute_loss best_output patience min_delta keep_best test_metric "
                            "test_metric_layer",
    "Snapshots": "snapshot snapshot_epoch snapshot_every snapshot_prefix snapshot_format "
                 "snapshot_diff snapshot_after_train keep_last",
    "Ranks and precision": "strategy strategy_param virtual_ranks exchange_type layer_wise_reduce "
                           "loss_scale loss_scale_window",
}


def asked(trainer, verb):
    done = subprocess.run([trainer, verb, "--json"], text=True, capture_output=True, check=True)
    answer = json.loads(done.stdout)
    FIELDS.update(field["name"] for message in answer["messages"].values()
                  for field in message["fields"])
    return answer


def prose(text):
    """Returns the program's text as Markdown: field names as `code`, special characters escaped."""
    parts = text.split("`")
    for i in range(0, len(parts), 2):
        words = re.split(r"([\w.]*_\w+)", parts[i])
        parts[i] = "".join(f"`{word}`" if word.split(".")[-1] in FIELDS else
                           re.sub(r"([*<>_\[\]|])", r"\\\1", word) for word in words)
    return "`".join(parts)


def paragraphs(text):
    return "\n\n".join(prose(line) for line in text.split("\n")) + "\n"


def anchor(name):
    return name.lower().replace(" ", "-").replace(",", "")


def type_text(text, linked):
    words = text.split(" ")
    if words[-1] in linked:
        return " ".join([*words[:-1], f"[{words[-1]}](#{anchor(words[-1])})"])
    return text.replace("|", "\\|")


def field_table(fields, linked):
    lines = ["| field | type | default | meaning |", "|---|---|---|---|"]
    for field in fields:
        default = f"`{field['default']}`" if field["default"] else ""
        lines.append(f"| `{field['name']}` | {type_text(field['type'], linked)} | {default} "
                     f"| {prose(field['comment'])} |")
    return "\n".join(lines) + "\n"


def contents(groups):
    return "".join(f"- {title}: " + ", ".join(f"[{name}](#{anchor(name)})" for name in names) + "\n"
                   for title, names in groups.items())


def layer_section(layer, message_of, messages, linked):
    example = layer["example"]
    shapes = [f"{verb} {', '.join(example[verb])}" for verb in ("reads", "writes", "stores")
              if example[verb]]
    text = f"### {layer['type']}\n\n{paragraphs(layer['text'])}\n"
    text += (f"Bottoms: {layer['bottoms']}. Tops: {layer['tops']}. "
             f"Storage: {layer['storage']}.\n\n```prototxt\n{example['text']}```\n")
    if shapes:
        text += f"\nThis example {'; '.join(shapes)}.\n"
    for param in layer["params"]:
        name = message_of[param]
        if name in linked:
            text += f"\nFields of `{param}`: see [{name}](#{anchor(name)}).\n"
        else:
            text += f"\nFields of `{param}`:\n\n{field_table(messages[name]['fields'], linked)}"
    return text + "\n"


def reachable(names, messages, own):
    """Returns the messages that fields of `names` contain, directly or indirectly, except `own`."""
    found, left = [], list(names)
    while left:
        for field in messages[left.pop()]["fields"]:
            name = field["type"].split(" ")[-1]
            if name in messages and name not in found and name not in own | LEFT_OUT:
                found.append(name)
                left.append(name)
    return found


def layers_page(data):
    layers = {layer["type"]: layer for layer in data["layers"]}
    groups = {title: names.split() for title, names in GROUPS.items()}
    missing = set(layers) ^ {name for names in groups.values() for name in names}
    if missing:
        sys.exit(f"GROUPS of make_reference.py and the program differ in {sorted(missing)}")
    messages = data["messages"]
    message_of = {field["name"]: field["type"].split(" ")[-1]
                  for field in messages["LayerParameter"]["fields"]}
    uses = [message_of[param] for layer in data["layers"] for param in layer["params"]]
    shared = sorted({name for name in uses if uses.count(name) > 1})
    own = set(uses) - set(shared)
    others = {"MnActivationParameter", "MnParamGradCompressParameter", "QuantizationParameter",
              "MultinodeLayerParameter", "PythonParameter", "MultinodeParameter",
              "MnModelParallelParameter", "MnParamGradCompressLayerTypeList"}  # without effect, or refused
    linked = sorted({*shared, *reachable([*uses, "LayerParameter", "NetParameter"], messages,
                                         own | others)})
    text = NOTE + "# Layer types\n\n" + (
        "`trainer layers TYPE` prints each of these sections in a terminal. Shapes are written "
        "(N, C, H, W): batch, channels, height, width. A bottom is an input of a layer, a top is an "
        "output. The program plans each example and reports the shapes below it. [The solver](solver.md) has a page of its own; "
        "[Nets and solvers](../prototxt.md) explains how layers make a net.\n\n")
    text += contents(groups) + ("- Fields of every layer: [LayerParameter](#layerparameter), "
                                "[NetParameter](#netparameter)\n\n")
    for title, names in groups.items():
        text += f"## {title}\n\n"
        text += "".join(layer_section(layers[name], message_of, messages, linked) for name in names)
    text += "## Fields that several layers have\n\n"
    for name in ["LayerParameter", "NetParameter", *linked]:
        fields = [field for field in messages[name]["fields"]
                  if name != "LayerParameter" or field["type"].split(" ")[-1] not in own | others]
        text += (f"### {name}\n\n{prose(messages[name]['comment'])}\n\n"
                 f"{field_table(fields, {*linked, 'LayerParameter'})}\n")
    return text.rstrip("\n") + "\n"


def solver_page(data):
    messages = data["messages"]
    fields = {field["name"]: field for field in messages["SolverParameter"]["fields"]}
    groups = {title: names.split() for title, names in SOLVER_GROUPS.items()}
    named = {name for names in groups.values() for name in names}
    if named - set(fields):
        sys.exit(f"SOLVER_GROUPS: the program has no field {sorted(named - set(fields))}")
    rest = [name for name in fields if name not in named]
    linked = [name for name in reachable(["SolverParameter"], messages, set())
              if name.startswith(("Strategy", "Contrastive", "LBFGS"))]
    text = NOTE + "# The solver\n\n" + (
        "`trainer solver FIELD` prints one of these lines in a terminal. Any field may be set in the "
        "solver's file or on the command line: `--set base_lr=0.01`. "
        "[Learning rate schedules](../how-to/learning-rate-schedule.md) shows what each `lr_policy` "
        "computes; [Layer types](layers.md) has the fields of nets.\n\n")
    text += "## Update rules\n\n" + (
        f"`type` names one of these rules; `trainer solver RULE` prints its formula. "
        f"{prose(data['symbols'])}\n\n")
    for rule, formula in data["rules"].items():
        text += f"### {rule}\n\n{paragraphs(formula)}\n"
    for title, names in {**groups, "Fields for other programs, and old forms": rest}.items():
        text += f"## {title}\n\n{field_table([fields[name] for name in names], linked)}\n"
    for name in linked:
        text += (f"## {name}\n\n{prose(messages[name]['comment'])}\n\n"
                 f"{field_table(messages[name]['fields'], linked)}\n")
    return text.rstrip("\n") + "\n"


def main(arguments):
    trainer = pathlib.Path(arguments[0]).resolve()
    pages = {"layers.md": layers_page(asked(trainer, "layers")),
             "solver.md": solver_page(asked(trainer, "solver"))}
    stale = [name for name, text in pages.items()
             if not (FOLDER / name).exists() or (FOLDER / name).read_text() != text]
    if arguments[1:] == ["--check"]:
        for name in stale:
            print(f"docs/reference/{name} is not what the program prints; write it anew with "
                  "scripts/make_reference.py build/release/trainer")
        return 1 if stale else 0
    FOLDER.mkdir(exist_ok=True)
    for name in stale:
        (FOLDER / name).write_text(pages[name])
        print(f"wrote docs/reference/{name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
