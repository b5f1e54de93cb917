#pragma once
// A record of which checks the tests of this process have made for which layer type. LayerRunner
// and layer_expectations.cc fill it in; the layers test requires a full table at its end.

#include <array>
#include <map>
#include <set>
#include <string>

namespace trainer {

enum class LayerCheck { kValues, kGradient, kInPlace, kImages, kRefusals, kBf16 };
inline constexpr int kLayerChecks = 6;

// Returns the heading of the check's column in the table.
const char* NameOf(LayerCheck check);

class LayerChecks {
 public:
  static LayerChecks& Get();

  // Records that the current test has made `check` of layer `type`.
  void Made(const std::string& type, LayerCheck check);
  // Records that a layer `type` has refused with `text`.
  void Refused(const std::string& type, const std::string& text);
  void NotFor(const std::string& type, LayerCheck check, const std::string& reason);

  struct Row {
    std::array<std::set<std::string>, kLayerChecks> done;  // tests; for refusals their texts
    std::map<LayerCheck, std::string> not_for;             // reasons
    bool gradient_refused = false;
  };
  const std::map<std::string, Row>& rows() const { return rows_; }

 private:
  std::map<std::string, Row> rows_;
};

// Returns whether the name of the current test says that it expects numbers: HandValues...,
// GoldenValues... or ImagesEqual...
bool TestExpectsValues();

// Returns the layer type in a layer's prototxt, or "".
std::string TypeIn(const std::string& prototxt);

// Declares, in the test of a layer type, that a check makes no sense for it:
//   const NotChecked kNoImages("Embed", LayerCheck::kImages, "takes no image");
struct NotChecked {
  NotChecked(const std::string& type, LayerCheck check, const std::string& reason) {
    LayerChecks::Get().NotFor(type, check, reason);
  }
};

}  // namespace trainer
