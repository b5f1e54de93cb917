#pragma once
// Changes that the command line makes to a solver or a net: --set key=value.

#include <google/protobuf/message.h>

#include <string>
#include <vector>

namespace trainer {

struct NetSpec;

// A key is a path of fields with dots between: "base_lr", "test_state[0].stage",
// "layer[conv1].convolution_param.num_output", "force_backward". layer[NAME] means every layer of
// that name, layer[NAME,TRAIN] the one that an include rule keeps for that phase. NAME may be a
// NamePattern: layer[/conv.*/]. Elsewhere [i] picks element i of a repeated field; without it the
// value takes the place of all elements ("stepvalue=[100,200]"). A value is written as in a
// prototxt; text needs no quotes.
class Overrides {
 public:
  Overrides() = default;
  // Throws kUsage for a text that is not key=value.
  explicit Overrides(const std::vector<std::string>& assignments);

  bool empty() const { return items_.empty(); }

  // Makes the changes whose first field exists in `message` (a solver). Throws kUsage with the
  // assignment for an unknown field (with the nearest), an index that does not exist or a value of
  // the wrong kind.
  void ApplyTo(google::protobuf::Message* message);
  // Makes the changes to layers, and those to the net's own fields except fields of the solver.
  void ApplyTo(NetSpec* net);
  // Throws kUsage for an assignment that found nothing to change.
  void CheckAllUsed() const;

 private:
  struct Part {
    std::string field, index;  // "layer", "conv1"; no index: ""
  };
  struct Item {
    std::string text, value;
    std::vector<Part> path;
    bool used = false;
    bool of_message = false;          // it changed a field of the solver
    std::vector<std::string> near;    // names that could have been meant
    std::vector<std::string> layers;  // of the nets, for a key that names no field
  };

  // Throws kUsage: "--set key=value: message".
  [[noreturn]] static void Fail(const Item& item, const std::string& message);
  // Follows the item's path from part `depth` on into `message`, and assigns the value at its end.
  static void Set(const Item& item, size_t depth, google::protobuf::Message* message);
  // Replaces the value of the path's last field, all elements of a repeated one, or the element at
  // the index. An empty value clears a repeated field.
  static void Assign(const Item& item, google::protobuf::Message* message);
  // Makes a change layer[NAME].FIELD=VALUE in every layer that the index selects.
  static void ApplyToLayers(Item* item, NetSpec* net);
  // Returns " Did you mean 'layer[conv1].freeze=true'?" for "conv1.freeze=true", or "". `exactly`:
  // whether the key must begin with the name of a layer, or with one that is similar to none.
  static std::string LayerMeant(const Item& item, bool exactly);

  std::vector<Item> items_;
};

}  // namespace trainer
