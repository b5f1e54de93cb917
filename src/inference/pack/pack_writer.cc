#include "trainer/inference/pack/pack_writer.h"

#include <google/protobuf/text_format.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "pack/pack_card.h"
#include "trainer/backend/device/cpu_device.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"
#include "trainer/checkpoint/tensor_model.h"
#include "trainer/inference/inference_net.h"
#include "trainer/inference/pack/model_pack.h"
#include "trainer/inference/predict/blob_source.h"
#include "trainer/inference/predict/class_names.h"
#include "trainer/inference/predict/table_prediction.h"
#include "trainer/net/weights.h"
#include "trainer/storage/sealed_tar.h"
#include "trainer/storage/table_format.h"

namespace trainer {
namespace {

constexpr uint64_t kMostSmallFileBytes = uint64_t{1} << 30;  // mean image or table format

// Returns whether the net has one input, and that input can be images.
bool TakesImages(const Net& net) {
  const std::vector<InputBlob> inputs = InputBlobs(net);
  return inputs.size() == 1 && inputs[0].value.shape.Rank() == 4;
}

// Returns the number of scores per item of the net's only output, or 0.
int64_t ClassesOf(const Net& net) {
  if (net.outputs().size() != 1) return 0;
  const Tensor& scores = net.outputs()[0].value;
  return scores.shape.Rank() > 1 ? scores.Count() / scores.shape[0] : 0;
}

// Returns the comment that says how to prepare the inputs, or "". Adds the files that the comment
// names to `members`.
std::string PrepareComment(const ImageInputFlags& images, const NetSpec& spec, const Net& net,
                           std::vector<TarMember>* members) {
  const std::string table = ResolveLike("", spec);
  if (!table.empty()) {
    members->push_back({kPackTableName, ReadFile(TableFormatPath(table), kMostSmallFileBytes)});
    return Join(kTableComment, kPackTableName);
  }
  if (!TakesImages(net)) return "";
  ImageInputFlags flags = MergeImageFlags(images, spec);
  const Shape input = InputBlobs(net)[0].value.shape;
  // Throws for flags with which 'trainer predict' could not use the pack.
  if (input[1] == 1 || input[1] == 3) ImagePreprocessor(input, ParseImageFlags(flags));
  if (!flags.mean.empty()) {
    members->push_back({kPackMeanName, ReadFile(flags.mean, kMostSmallFileBytes)});
    flags.mean = kPackMeanName;
  }
  return ImageComment(flags);
}

// Returns the layers that `state` selects, as prototxt with `comment` in its first line. Removes
// their include and exclude rules, so that the pack works without --level and --stage.
std::string NetText(const NetSpec& spec, const caffe::NetState& state, const std::string& comment) {
  caffe::NetParameter proto = spec.proto;
  for (const LayerSpec& layer : FilterLayers(spec, state)) {
    caffe::LayerParameter& kept = *proto.add_layer();
    kept = layer.proto();
    kept.clear_include();
    kept.clear_exclude();
    if (kept.phase() == state.phase()) kept.clear_phase();
  }
  std::string text;
  google::protobuf::TextFormat::PrintToString(proto, &text);
  return comment.empty() ? text : Join("# ", EscapeControl(comment), "\n", text);
}

// Adds the names of the classes, one per line, and returns how many there are.
int64_t AddLabels(const PackOptions& options, const PredictionTarget& target, const Net& net,
                  std::vector<TarMember>* members) {
  const int64_t classes = ClassesOf(net);
  const std::vector<std::string> names = options.labels.empty()
                                             ? ReadClassNamesOfRun(target.class_names, classes)
                                             : ReadClassNames(options.labels, classes);
  if (names.empty()) return 0;
  members->push_back({kPackLabelsName, JoinList(names, "\n") + "\n"});
  return static_cast<int64_t>(names.size());
}

// Returns the card of the run, or nothing if `run` is "" or the run has no card.
std::optional<RunCard> FindRunCard(const std::string& run) {
  if (run.empty() || !Exists(JoinPath(run, kCardName))) return std::nullopt;
  return ReadRunCard(run);
}

}  // namespace

std::string WriteModelPack(const PackOptions& options) {
  PredictionTargetOptions wanted = options.target;
  wanted.verb = "pack";
  if (!wanted.run.empty() && !wanted.batch) wanted.batch = 1;  // as `trainer deploy` does
  const PredictionTarget target = ResolvePredictionTarget(wanted);
  const std::unique_ptr<Device> device = MakeCpuDevice();
  InferenceNet net(target.net, *device, {.state = target.state});
  net.LoadAllWeights(target.weights);
  std::vector<TarMember> members(2);
  PackFacts facts;
  facts.preparation = PrepareComment(options.images, target.net, net.net(), &members);
  facts.labels = AddLabels(options, target, net.net(), &members);
  members[0] = {kPackNetName, NetText(target.net, target.state, facts.preparation)};
  members[1] = {kPackWeightsName, SafetensorsOf(WeightsOf(net.net()))};
  for (const std::string& file : target.weights) facts.weights.push_back(IdentifyForCard(file));
  facts.run = FindRunCard(options.target.run);
  std::string card = MakePackCard(net.net(), facts, members).ToString();
  members.insert(members.begin(), TarMember{kPackCardName, std::move(card)});
  WriteSealedTar(options.out, members);
  const bool is_unnamed = facts.labels == 0 && TakesImages(net.net()) && ClassesOf(net.net()) > 1;
  return Join("Wrote ", options.out, ": ", FileSize(options.out), " bytes",
              is_unnamed ? "; the classes have no names: give them with --labels=FILE" : "");
}

}  // namespace trainer
