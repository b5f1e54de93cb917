#include "connections.h"

#include <algorithm>
#include <set>

#include "trainer/base/error/error_collector.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// Follows the layers in order and remembers which output each blob name means at that point.
class Connector {
 public:
  explicit Connector(const LayersInState& net) : net_(net), layers_(net.layers) {}

  // Returns the producers of all bottoms, or throws all errors together.
  std::vector<std::vector<OutputRef>> Run() {
    std::vector<std::vector<OutputRef>> readers;
    ErrorCollector errors, repeated;
    std::set<std::string> left_out;
    for (int i = 0; i < static_cast<int>(layers_.size()); ++i) {
      std::vector<OutputRef> bottoms;
      for (int j = 0; j < layers_[i].proto().bottom_size(); ++j) {
        // The blobs of one layer that is left out, such as data and label, count as one mistake.
        const std::string& blob = layers_[i].proto().bottom(j);
        const std::string rules = last_.contains(blob) ? "" : LeftOut(blob);
        const bool is_new = rules.empty() || left_out.insert(rules).second;
        (is_new ? errors : repeated).Try([&] { bottoms.push_back(FindProducer(i, j)); });
      }
      readers.push_back(std::move(bottoms));
      // If two layers produce the same blobs, such as data and label, this counts as one mistake.
      bool made = true;
      for (int j = 0; j < layers_[i].proto().top_size(); ++j) {
        made = (made ? errors : repeated).Try([&] { Produce(i, j); }) && made;
      }
    }
    errors.Throw();
    return readers;
  }

 private:
  // Returns the latest earlier output with the name of bottom `j` of layer `i`. If there is none,
  // throws kConfig and says whether a later layer, or one that its rules exclude, would produce it.
  OutputRef FindProducer(int i, int j) const {
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
              ? Join("bottom '", blob, "' is made by this layer itself and by no layer before it")
              : Join("bottom '", blob, "' is made by a later layer, '", layers_[later].name(),
                     "' (", layers_[later].Where().ToString(),
                     "); layers run in the order of the file: move that layer up"),
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

  // Returns the layers of the file that would produce the blob if their rules did not exclude them;
  // or "".
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

  // Records top `j` of layer `i` as the producer of its name. Throws if the name has a producer
  // already, unless the layer works in place, i.e. its bottom `j` has the same name.
  void Produce(int i, int j) {
    const LayerSpec& layer = layers_[i];
    const std::string& blob = layer.proto().top(j);
    const auto [entry, added] = last_.emplace(blob, OutputRef{i, j});
    const bool in_place = j < layer.proto().bottom_size() && layer.proto().bottom(j) == blob &&
                          EarlierTopsOfName(i, j) == 0;
    if (!added && !in_place) RefuseSecondMaker(entry->second, {i, j});
    entry->second = {i, j};
  }

  // Throws kConfig for two producers of one blob. For two data layers, the message shows the
  // include rules that may be missing.
  [[noreturn]] void RefuseSecondMaker(const OutputRef& first, const OutputRef& second) const {
    const LayerSpec& maker = layers_[first.layer];
    const LayerSpec& layer = layers_[second.layer];
    const std::string blob = layer.proto().top(second.top);
    const std::string made = Join("top '", blob, "' is already made by layer '", maker.name(),
                                  "' (", maker.Where("top", first.top).ToString(), "); ");
    const bool both_read = maker.proto().bottom_size() == 0 && layer.proto().bottom_size() == 0;
    if (both_read && first.layer != second.layer) {
      layer.Fail("top", made + RulesFor(maker, layer), second.top);
    }
    layer.Fail(
        "top",
        Join(made, "give it another name. A layer may overwrite only its own input: its ", "top ",
             second.top, " must be its bottom ", second.top, ", '",
             second.top < layer.proto().bottom_size() ? layer.proto().bottom(second.top) : "none",
             "'"),
        second.top);
  }

  // Explains why both of two data layers are in the net, and what to write so that each phase has
  // one.
  std::string RulesFor(const LayerSpec& maker, const LayerSpec& layer) const {
    const auto phase = [](const LayerSpec& of) {
      return of.proto().include_size() == 1 && of.proto().include(0).has_phase()
                 ? of.proto().include(0).phase()
                 : caffe::Phase(-1);
    };
    for (const auto& [has, lacks] : {std::pair(&maker, &layer), std::pair(&layer, &maker)}) {
      if (phase(*has) == caffe::Phase(-1) || lacks->proto().include_size() > 0) continue;
      const char* const other = phase(*has) == caffe::TRAIN ? "TEST" : "TRAIN";
      return Join("in ", net_.state, " both are in the net. The layer in line ",
                  lacks->Where().line, " has no include rule; maybe include { phase: ", other,
                  " } is missing there");
    }
    return "both are in the net. If one is for training and one for testing, write include { "
           "phase: TRAIN } in the first "
           "and include { phase: TEST } in the second; else give the top another name";
  }

  // Returns how many tops of layer i before its top j have the same name.
  int EarlierTopsOfName(int i, int j) const {
    const auto& tops = layers_[i].proto().top();
    return static_cast<int>(std::count(tops.begin(), tops.begin() + j, tops.Get(j)));
  }

  const LayersInState& net_;
  const std::vector<LayerSpec>& layers_;
  std::map<std::string, OutputRef> last_;  // the latest producer of each blob name
};

}  // namespace

std::vector<std::vector<OutputRef>> Connect(const LayersInState& net) {
  return Connector(net).Run();
}

}  // namespace trainer
