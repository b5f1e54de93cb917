#include "trainer/layers/layer.h"

#include "trainer/base/text/text.h"
#include "trainer/config/checks/known_forks.h"
#include "trainer/config/layer_types.h"

namespace trainer {
namespace {

// Returns the pages, in a function so that they exist before the first static RegisterLayer.
std::map<std::string, LayerDoc>& MutableDocs() {
  static std::map<std::string, LayerDoc> docs;
  return docs;
}

// Returns a message that says how to replace a layer that brings data into a net; "" for other
// layers.
std::string DataAdvice(const LayerSpec& spec) {
  if (spec.proto().bottom_size() > 0 || spec.proto().top_size() == 0) return "";
  return ". It is a data layer: write the data to HDF5 files and read them with HDF5Data, or use "
         "an Input layer, which 'trainer features' and 'trainer predict' fill";
}

// Throws kConfig for a type that is not registered. The message differs for a missing type, Python
// layers, types of a known fork of Caffe, and misspelt names.
[[noreturn]] void RefuseType(const LayerSpec& spec) {
  const std::vector<std::string> names = LayerRegistry::Get().Names();
  const std::string& type = spec.type();
  constexpr char kList[] = "'trainer layers' lists the types";
  if (type.empty()) spec.Fail(Join("the layer has no type; ", kList));
  if (type == "Python") {
    const std::string advice = DataAdvice(spec);
    spec.Fail("type", Join("a net cannot run Python code, because a net is data, not a program",
                           advice.empty() ? "; write the layer in C++ (src/extend.md) or use "
                                            "another type: "
                                          : Join(advice, ". "),
                           kList));
  }
  if (const std::string_view fork = ForkOfType(type); !fork.empty()) {
    spec.Fail("type", Join("this type belongs to a fork of Caffe (", fork,
                           "), and this program does not have it", DataAdvice(spec), ". ", kList));
  }
  spec.Fail("type", Join("unknown layer type '", type, "'.", DidYouMean(type, names), " ", kList));
}

void RequireType(const LayerSpec& spec) {
  if (!LayerRegistry::Get().Has(spec.type())) RefuseType(spec);
}

// Gives module config, which must not depend on this one, the check of a layer's type.
[[maybe_unused]] const bool kTypesAreKnown = (SetTypeCheck(RequireType), true);

// Formats the allowed number of bottoms or tops: "1 bottom", "1 to 2 tops", "at least 2 bottoms",
// "no tops". `max` is -1 without an upper bound.
std::string FormatAllowedCount(int min, int max, const char* noun) {
  if (max == 0) return Join("no ", noun, "s");
  const std::string many = Join(" ", noun, (max == 1 || (max < 0 && min == 1)) ? "" : "s");
  if (max < 0) return Join("at least ", min, many);
  return min == max ? Join(min, many) : Join(min, " to ", max, many);
}

// Throws kConfig unless `given` bottoms or tops (`noun`) are from `min` to `max`; -1: no upper
// bound.
void CheckCount(const LayerSpec& spec, int given, int min, int max, const char* noun) {
  if (given >= min && (max < 0 || given <= max)) return;
  spec.Fail(Join("it needs ", FormatAllowedCount(min, max, noun), ", but ", given,
                 given == 1 ? " is" : " are", " given"));
}

}  // namespace

void Layer::Backward(const RunContext&) {
  throw Error(ErrorCode::kInternal, "a layer without a gradient was asked for one");
}

void Layer::ThrowInputError(const RunContext&, int64_t index, float number) const {
  throw Error(ErrorCode::kInternal,
              Join("a layer that explains no faults reported ", number, " at index ", index));
}

bool Layer::Fuse(std::span<const LayerSpec* const> next, const Device&) { return next.empty(); }

void Layer::RestoreState(const std::string& state) {
  if (!state.empty()) {
    throw Error(ErrorCode::kBadSnapshot,
                "the snapshot has a position for a layer that has no position: it is from another "
                "net; use the net of the snapshot");
  }
}

const std::map<std::string, LayerDoc>& LayerDocs() { return MutableDocs(); }

void AddLayerDoc(const std::string& type, const LayerDoc& doc) { MutableDocs()[type] = doc; }

std::unique_ptr<Layer> MakeLayer(const LayerSpec& spec, const LayerEnv& env) {
  RequireType(spec);
  const LayerArity& arity = MutableDocs().at(spec.type()).arity;
  CheckCount(spec, spec.proto().bottom_size(), arity.min_in, arity.max_in, "bottom");
  CheckCount(spec, spec.proto().top_size(), arity.min_out, arity.max_out, "top");
  return LayerRegistry::Get().Make(spec.type(), spec, env);
}

}  // namespace trainer
