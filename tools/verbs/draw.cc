#include <iostream>
#include <string>
#include <vector>

#include "flag_groups.h"
#include "trainer/analysis/summary/net_graph.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"
#include "trainer/cli/verb.h"
#include "trainer/config/net_layers.h"
#include "trainer/inference/pack/model_pack.h"

namespace trainer {
namespace {

// Draws the net as a graph, without shapes if its data cannot be read.
class Draw final : public Verb {
 public:
  void Declare(FlagSet& flags) override {
    DeclareModel(flags, &net_);
    flags.Bind(&out_, "out", "FILE", "where to write, ending in .svg, .dot, .png or .pdf")
        .Required();
    DeclareForce(flags, &force_);
    DeclarePhase(flags, &phase_);
    DeclareNetChanges(flags, &net_);
  }

  int Run() override {
    if (!IsGraphFile(out_)) {
      throw Error(ErrorCode::kUsage,
                  Join("--out=", out_, " must end in .svg or .dot, or with Graphviz .png or .pdf"));
    }
    RefuseToReplace(out_, force_);
    const NetSpec spec = LoadModel(net_);
    const caffe::NetState state = MakeNetState(phase_, net_.state);
    const std::vector<LayerSpec> layers = FilterLayers(spec, state);
    ConnectedLayers(spec, state);  // throws for a net that cannot be connected
    const NetShapes shapes = PlanShapes(spec, state);
    if (!shapes.why_not.empty()) {
      std::cerr << "drawn without shapes: " << EscapeControl(shapes.why_not) << "\n";
    }
    const std::string title =
        Join(spec.proto.name(), phase_ == caffe::TRAIN ? ", phase TRAIN" : ", phase TEST");
    WriteNetGraph(NetGraph(layers, shapes), title, out_);
    std::cout << EscapeControl(Join(out_, ": ", title, ", ", layers.size(), " layers")) << "\n";
    return 0;
  }

 private:
  NetSource net_;
  std::string out_;
  bool force_ = false;
  caffe::Phase phase_ = caffe::TRAIN;
};

const RegisterVerb<Draw> kDrawVerb("draw");

}  // namespace
}  // namespace trainer
