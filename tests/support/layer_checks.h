#pragma once
// Which checks the tests of this process have made of which layer type. LayerRunner and the
// expectations beside it write it down; the layers test demands a full table at its end.

#include <array>
#include <map>
#include <set>
#include <string>

namespace trainer {

enum class LayerCheck { kValues, kGradient, kInPlace, kImages, kRefusals, kBf16 };
inline constexpr int kLayerChecks = 6;

// How the table heads a check's column.
const char* NameOf(LayerCheck check);

class LayerChecks {
 public:
  static LayerChecks& Get();

  // The current test has made `check` of layer `type`.
  void Made(const std::string& type, LayerCheck check);
  // A layer `type` has refused with `text`.
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

// Whether the name of the current test says that it expects numbers: HandValues..., GoldenValues...
// or ImagesEqual...
bool TestExpectsValues();

// The layer type in a layer's prototxt, "" when there is none.
std::string TypeIn(const std::string& prototxt);

// A check that makes no sense for a type, declared in that type's test:
//   const NotChecked kNoImages("Embed", LayerCheck::kImages, "takes no image");
struct NotChecked {
  NotChecked(const std::string& type, LayerCheck check, const std::string& reason) {
    LayerChecks::Get().NotFor(type, check, reason);
  }
};

}  // namespace trainer
