#include "connections.h"

#include <algorithm>

#include "trainer/base/error_group.h"
#include "trainer/base/text.h"

namespace trainer {
namespace {

class Connector {
 public:
  explicit Connector(const LayersInState& net) : net_(net), layers_(net.layers) {}

  std::vector<std::vector<OutputRef>> Run() {
    std::vector<std::vector<OutputRef>> readers;
    ErrorList errors;
    for (int i = 0; i < static_cast<int>(layers_.size()); ++i) {
      std::vector<OutputRef> bottoms;
      for (int j = 0; j < layers_[i].proto().bottom_size(); ++j) {
        Attempt(&errors, [&] { bottoms.push_back(Find(i, j)); });
      }
      readers.push_back(std::move(bottoms));
      for (int j = 0; j < layers_[i].proto().top_size(); ++j) {
        Attempt(&errors, [&] { Produce(i, j); });
      }
    }
    if (!errors.empty()) ThrowAll(std::move(errors));
    return readers;
  }

 private:
  OutputRef Find(int i, int j) const {
    const LayerSpec& layer = layers_[i];
    const std::string& blob = layer.proto().bottom(j);
    const auto producer = last_.find(blob);
    if (producer != last_.end()) return producer->second;
    for (size_t later = i; later < layers_.size(); ++later) {
      const auto& tops = layers_[later].proto().top();
      if (std::find(tops.begin(), tops.end(), blob) == tops.end()) continue;
      layer.Fail(
          "bottom",
          later == static_cast<size_t>(i)
              ? Join("bottom '", blob, "' is made by this layer itself and by none before it")
              : Join("bottom '", blob, "' is made only later, by layer '", layers_[later].name(),
                     "' (", layers_[later].Where().ToString(),
                     "); layers run in the order of the file: move it up"),
          j);
    }
    const std::string left_out = LeftOut(blob);
    std::vector<std::string> names;
    for (const auto& entry : last_) names.push_back(entry.first);
    layer.Fail("bottom",
               Join("no layer makes bottom '", blob, "'.",
                    left_out.empty() ? DidYouMean(blob, names) : left_out),
               j);
  }

  // The layers of the file that would make the blob, but for their rules; or "".
  std::string LeftOut(const std::string& blob) const {
    std::vector<std::string> makers;
    for (const LayerSpec& maker : net_.file) {
      const auto& tops = maker.proto().top();
      if (std::find(tops.begin(), tops.end(), blob) == tops.end()) continue;
      const char* rule = maker.proto().include_size() > 0 ? "include" : "exclude";
      makers.push_back(Join("layer '", maker.name(), "' would, but its ", rule, " rule (",
                            maker.Where(rule, 0).ToString(), ") leaves it out in ", net_.state));
    }
    return makers.empty() ? "" : Join(" ", JoinList(makers, "; "));
  }

  void Produce(int i, int j) {
    const LayerSpec& layer = layers_[i];
    const std::string& blob = layer.proto().top(j);
    const auto [entry, added] = last_.emplace(blob, OutputRef{i, j});
    const bool in_place =
        j < layer.proto().bottom_size() && layer.proto().bottom(j) == blob && Makes(i, j) == 0;
    if (!added && !in_place) {
      const OutputRef other = entry->second;
      layer.Fail(
          "top",
          Join("top '", blob, "' is already made by layer '", layers_[other.layer].name(), "' (",
               layers_[other.layer].Where("top", other.top).ToString(), "); only top ", j,
               " of a layer whose bottom ", j, " has the same name may ", "write over it"),
          j);
    }
    entry->second = {i, j};
  }

  // How many tops of layer i before its top j have the same name.
  int Makes(int i, int j) const {
    const auto& tops = layers_[i].proto().top();
    return static_cast<int>(std::count(tops.begin(), tops.begin() + j, tops.Get(j)));
  }

  const LayersInState& net_;
  const std::vector<LayerSpec>& layers_;
  std::map<std::string, OutputRef> last_;  // the latest maker of each blob name
};

}  // namespace

std::vector<std::vector<OutputRef>> Connect(const LayersInState& net) {
  return Connector(net).Run();
}

}  // namespace trainer
