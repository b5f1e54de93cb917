#include "trainer/layers/layer.h"

#include <algorithm>
#include <iterator>

#include "trainer/base/text.h"

namespace trainer {
namespace {

std::map<std::string, LayerDoc>& MutableDocs() {
  static std::map<std::string, LayerDoc> docs;
  return docs;
}

// Types that net files of Caffe and of its NVIDIA fork name and that cannot be had here.
constexpr std::string_view kForeignTypes[] = {
    "AnnotatedData",
    "DetectNetTransformation",
    "DetectionEvaluate",
    "DetectionOutput",
    "MultiBoxLoss",
    "PriorBox",
    "TRT",
    "VideoData",
};

[[noreturn]] void RefuseType(const LayerSpec& spec) {
  const std::vector<std::string> names = LayerRegistry::Get().Names();
  const std::string& type = spec.type();
  if (type.empty()) spec.Fail("layer has no type; give one of: " + JoinList(names));
  if (type == "Python") {
    spec.Fail("type",
              "a net cannot run Python code here: nets are data, not programs; write the layer in "
              "C++ (src/README.md) or use one of: " +
                  JoinList(names));
  }
  if (std::ranges::find(kForeignTypes, type) != std::end(kForeignTypes)) {
    spec.Fail("type", Join("type '", type,
                           "' is not available in this build; known types: ", JoinList(names)));
  }
  spec.Fail("type", Join("unknown layer type '", EscapeControl(type), "'.", DidYouMean(type, names),
                         " Known types: ", JoinList(names)));
}

// "1 bottom", "1 to 2 tops", "at least 2 bottoms", "no tops"
std::string Wanted(int min, int max, const char* noun) {
  if (max == 0) return Join("no ", noun, "s");
  const std::string many = Join(" ", noun, (max == 1 || (max < 0 && min == 1)) ? "" : "s");
  if (max < 0) return Join("at least ", min, many);
  return min == max ? Join(min, many) : Join(min, " to ", max, many);
}

void CheckCount(const LayerSpec& spec, int given, int min, int max, const char* noun) {
  if (given >= min && (max < 0 || given <= max)) return;
  spec.Fail(Join("takes ", Wanted(min, max, noun), ", but ", given, given == 1 ? " is" : " are",
                 " given"));
}

}  // namespace

void Layer::Backward(RunContext&) {
  throw Error(ErrorCode::kInternal, "a layer without a gradient was asked for one");
}

void Layer::ThrowFault(const RunContext&, int64_t index, float number) const {
  throw Error(ErrorCode::kInternal,
              Join("a layer that explains no faults reported ", number, " at place ", index));
}

bool Layer::Absorb(const LayerSpec&) { return false; }

void Layer::RestoreState(const std::string& state) {
  if (!state.empty()) {
    throw Error(ErrorCode::kBadSnapshot,
                "the snapshot holds a position for a layer that keeps none: it is of another net");
  }
}

const std::map<std::string, LayerDoc>& LayerDocs() { return MutableDocs(); }

void AddLayerDoc(const std::string& type, const LayerDoc& doc) { MutableDocs()[type] = doc; }

std::unique_ptr<Layer> MakeLayer(const LayerSpec& spec, const LayerEnv& env) {
  if (!LayerRegistry::Get().Has(spec.type())) RefuseType(spec);
  const LayerArity& arity = MutableDocs().at(spec.type()).arity;
  CheckCount(spec, spec.proto().bottom_size(), arity.min_in, arity.max_in, "bottom");
  CheckCount(spec, spec.proto().top_size(), arity.min_out, arity.max_out, "top");
  return LayerRegistry::Get().Make(spec.type(), spec, env);
}

}  // namespace trainer
