#include "trainer/config/deploy.h"

#include <glog/logging.h>
#include <google/protobuf/text_format.h>

#include <charconv>
#include <iostream>

#include "deploy_images.h"
#include "device_flags.h"
#include "picture_flags.h"
#include "shared_flags.h"
#include "trainer/base/file/atomic_file.h"
#include "trainer/base/log/log.h"
#include "trainer/base/text/text.h"
#include "trainer/cli/verb.h"
#include "trainer/net/net.h"

namespace trainer {
namespace {

// "3,227,227"
Shape ParseShape(const Flags& flags) {
  std::vector<int64_t> dims;
  for (const std::string& word : flags.List("shape")) {
    int64_t dim = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), dim);
    if (error != std::errc() || end != word.data() + word.size() || dim < 1) {
      throw Error(ErrorCode::kUsage,
                  Join("--shape=", flags.Text("shape"), ": '", word,
                       "' is not a positive whole number; write --shape=3,227,227"));
    }
    dims.push_back(dim);
  }
  return Shape(std::span<const int64_t>(dims));
}

// The shapes of one item that the TEST net's data layers give, by blob.
std::map<std::string, Shape> PlannedShapes(const NetSpec& spec, const caffe::NetState& state,
                                           const std::vector<std::string>& blobs) try {
  const WarningsOnly warnings_only;
  const std::unique_ptr<Device> device = MakeDevice();
  ParamStore params(*device);
  NetOptions options;
  options.state = state;
  options.log = false;
  options.plan_only = true;
  const Net net(spec, options, *device, params);
  std::map<std::string, Shape> shapes;
  for (const std::string& blob : blobs) {
    const Shape whole = net.Value(blob).shape;
    shapes[blob] = Shape(whole.dims().subspan(whole.Rank() > 0 ? 1 : 0));
  }
  return shapes;
} catch (const Error& e) {
  throw Error(e.code(), Join(e.what(),
                             " (the net's data gives the shape of the input; if the data is not "
                             "there, give the shape of one item, such as --shape=3,227,227)"));
}

void SetShapes(const std::map<std::string, Shape>& shapes, int batch, caffe::NetParameter* deploy) {
  for (caffe::LayerParameter& layer : *deploy->mutable_layer()) {
    if (layer.type() != "Input" || layer.input_param().shape_size() > 0) continue;
    for (const std::string& top : layer.top()) {
      caffe::BlobShape* shape = layer.mutable_input_param()->add_shape();
      shape->add_dim(batch);
      for (const int64_t dim : shapes.at(top).dims()) shape->add_dim(dim);
    }
  }
}

class Deploy final : public Verb {
 public:
  VerbDoc Doc() const override {
    return {
        .task = VerbTask::kUse,
        .summary = "make the deploy net of a training net",
        .usage = "trainer deploy --model=FILE [--out=FILE] [flags]",
        .text =
            "Rewrites the TEST phase of the net: each data layer becomes an Input layer, the loss "
            "becomes the layer that computes the probabilities, and layers that only training or "
            "scoring needs are removed. The layer names do not change, so the trained weights "
            "still fit.\n"
            "The deploy net does not include the transform_param of the training net. Instead, a "
            "comment in the first line of the file lists the flags that prepare images in the same "
            "way. 'trainer classify' and 'trainer features' read that comment; flags that you give "
            "override it.",
        .examples =
            "trainer deploy --model=models/lenet/train_test.prototxt --out=deploy.prototxt\n"
            "trainer deploy --model=net.prototxt --shape=3,227,227 --batch=10",
        .flags =
            {{.name = "model", .value = "FILE", .help = "the net", .required = true},
             {.name = "out", .value = "FILE", .help = "where to write; default: print it"},
             ForceFlag(),
             {.name = "batch",
              .kind = FlagKind::kWhole,
              .value = "N",
              .fallback = "1",
              .help = "number of items per pass",
              .min = 1},
             {.name = "shape",
              .value = "C,H,W",
              .help = "shape of one item; default: the shape of the net's data"},
             {.name = "output",
              .value = "BLOBS",
              .help = "blobs to keep; default: the input of the loss with the largest loss_weight"},
             LevelFlag(),
             StageFlag(),
             SetFlag()},
    };
  }

  int Run(const Flags& flags) override {
    const NetSpec spec = ModelOf(flags);
    DeployOptions options;
    options.state = NetStateOf(flags, caffe::TEST);
    options.outputs = flags.List("output");
    caffe::NetParameter deploy = MakeDeploy(spec, options);
    const std::vector<std::string> inputs = InputsWithoutShape(deploy);
    std::map<std::string, Shape> shapes;
    if (flags.Has("shape")) {
      for (const std::string& input : inputs) shapes[input] = ParseShape(flags);
    } else if (!inputs.empty()) {
      shapes = PlannedShapes(spec, options.state, inputs);
    }
    SetShapes(shapes, flags.Whole("batch"), &deploy);
    Write(deploy, HowToPrepare(flags, spec, options.state), flags);
    return 0;
  }

 private:
  // A line for the file and the log; "" for a net that reads no images.
  static std::string HowToPrepare(const Flags& flags, const NetSpec& spec,
                                  const caffe::NetState& state) {
    const auto record_shape = [&](const std::string& top) {
      NetSpec whole = ModelOf(flags);
      ClearCrops(&whole);
      return PlannedShapes(whole, state, {top}).at(top);
    };
    const std::optional<std::string> image_flags = ImageFlags(spec, state, record_shape);
    if (!image_flags) return "";
    if (image_flags->empty()) return kImagesAsTheyAre;
    const bool unknown = image_flags->find("=H,W") != std::string::npos;
    return EscapeControl(Join(kPrepareImages, *image_flags, unknown ? kSizeOfTheData : ""));
  }

  static void Write(const caffe::NetParameter& deploy, const std::string& how, const Flags& flags) {
    std::string text;
    google::protobuf::TextFormat::PrintToString(deploy, &text);
    if (!how.empty()) text = Join("# ", how, "\n", text);
    const std::string& path = flags.Text("out");
    if (path.empty()) {
      std::cout << text;
      return;
    }
    RefuseToReplace(flags);
    WriteWhole(path, text);
    LOG(INFO) << EscapeControl(Join("Wrote ", path, ": ", deploy.layer_size(), " layers"));
    if (!how.empty()) LOG(INFO) << how;
  }
};

const RegisterVerb<Deploy> kDeployVerb("deploy");

}  // namespace
}  // namespace trainer
