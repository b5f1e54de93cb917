#include <iostream>

#include "net_picture.h"
#include "shared_flags.h"
#include "trainer/base/file/atomic_file.h"
#include "trainer/base/text/text.h"
#include "trainer/cli/verb.h"
#include "trainer/config/net_layers.h"

namespace trainer {
namespace {

class Draw final : public Verb {
 public:
  VerbDoc Doc() const override {
    return {
        .task = VerbTask::kLook,
        .summary = "draw a net as a picture, SVG or DOT",
        .usage = "trainer draw --model=FILE --out=FILE.svg [--phase=TEST] [flags]",
        .text =
            "The picture has a box for each layer with its output shapes and its number of "
            "parameters, and an arrow for each blob. A layer that works in place appears in the "
            "box of the layer before it. The ending of --out chooses the format: .svg for browsers "
            "(light or dark like the page), .dot for Graphviz. You need no weights. If a database "
            "is missing, the picture has no shapes.",
        .examples =
            "trainer draw --model=models/lenet/train_test.prototxt --out=lenet.svg\n"
            "trainer draw --model=net.prototxt --phase=TEST --out=net.dot",
        .flags = {{.name = "model", .value = "FILE", .help = "the net", .required = true},
                  {.name = "out",
                   .value = "FILE",
                   .help = "where to write, ending in .svg or .dot",
                   .required = true},
                  ForceFlag(),
                  PhaseFlag(),
                  LevelFlag(),
                  StageFlag(),
                  SetFlag()},
    };
  }

  int Run(const Flags& flags) override {
    const std::string& path = flags.Text("out");
    const bool svg = path.ends_with(".svg");
    if (!svg && !path.ends_with(".dot")) {
      throw Error(ErrorCode::kUsage,
                  Join("--out=", path,
                       " must end in .svg or .dot; browsers show .svg, and Graphviz makes other "
                       "pictures of .dot: dot -Tpng NET.dot > NET.png"));
    }
    RefuseToReplace(flags);
    const NetSpec spec = ModelOf(flags);
    const bool train = PhaseOf(flags) == caffe::TRAIN;
    const std::vector<LayerSpec> layers = FilterLayers(spec, NetStateOf(flags, PhaseOf(flags)));
    ConnectedLayers(spec, NetStateOf(flags, PhaseOf(flags)));  // for its checks
    const NetShapes shapes = ShapesOf(spec, NetStateOf(flags, PhaseOf(flags)));
    if (!shapes.why_not.empty()) {
      std::cerr << "drawn without shapes: " << EscapeControl(shapes.why_not) << "\n";
    }
    const NetPicture picture(layers, shapes);
    const std::string title = Join(spec.proto.name(), train ? ", phase TRAIN" : ", phase TEST");
    WriteWhole(path, svg ? picture.Svg(title) : picture.Dot(title));
    std::cout << EscapeControl(Join(path, ": ", title, ", ", layers.size(), " layers")) << "\n";
    return 0;
  }
};

const RegisterVerb<Draw> kDrawVerb("draw");

}  // namespace
}  // namespace trainer
