#include <iostream>
#include <string>
#include <vector>

#include "shared_flags.h"
#include "trainer/analysis/summary/net_graph.h"
#include "trainer/base/error/error.h"
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
            "(light or dark like the page), .dot for Graphviz, .png and .pdf if Graphviz is "
            "installed. You need no weights. If a database is missing, the picture has no shapes.",
        .examples =
            "trainer draw --model=models/lenet/train_test.prototxt --out=lenet.svg\n"
            "trainer draw --model=net.prototxt --phase=TEST --out=net.dot",
        .flags = {{.name = "model", .value = "FILE", .help = "the net", .required = true},
                  {.name = "out",
                   .value = "FILE",
                   .help = "where to write, ending in .svg, .dot, .png or .pdf",
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
    if (!IsGraphFile(path)) {
      throw Error(ErrorCode::kUsage,
                  Join("--out=", path, " must end in .svg or .dot, or with Graphviz .png or .pdf"));
    }
    RefuseToReplace(flags);
    const NetSpec spec = ModelOf(flags);
    const caffe::NetState state = NetStateOf(flags, PhaseOf(flags));
    const std::vector<LayerSpec> layers = FilterLayers(spec, state);
    ConnectedLayers(spec, state);  // for its checks
    const NetShapes shapes = PlanShapes(spec, state);
    if (!shapes.why_not.empty()) {
      std::cerr << "drawn without shapes: " << EscapeControl(shapes.why_not) << "\n";
    }
    const std::string title =
        Join(spec.proto.name(), state.phase() == caffe::TRAIN ? ", phase TRAIN" : ", phase TEST");
    WriteNetGraph(NetGraph(layers, shapes), title, path);
    std::cout << EscapeControl(Join(path, ": ", title, ", ", layers.size(), " layers")) << "\n";
    return 0;
  }
};

const RegisterVerb<Draw> kDrawVerb("draw");

}  // namespace
}  // namespace trainer
