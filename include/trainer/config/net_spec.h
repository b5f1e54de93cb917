#pragma once
// A net as read from a prototxt, and the rules that make one phase's layer list of it.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "net.pb.h"
#include "trainer/config/layer_spec.h"
#include "trainer/config/overrides.h"
#include "trainer/config/text/prototxt.h"

namespace trainer {

// What became of old forms: one sentence each, beginning with the file.
struct Upgrades {
  std::vector<std::string> done;
  std::vector<std::string> warnings;  // what is ignored

  bool empty() const { return done.empty() && warnings.empty(); }
  void Append(const Upgrades& more);
};

// A whole net file (or a net written inside a solver). Owns what its layers' places refer to: keep
// it while any LayerSpec of it lives. Movable.
struct NetSpec {
  caffe::NetParameter proto;      // all but the layers
  std::vector<LayerSpec> layers;  // in file order, every phase
  std::string file;
  Upgrades upgrades;                 // what was rewritten to get here
  std::unique_ptr<ParsedText> text;  // null when the net came with a solver, which owns it
  const google::protobuf::TextFormat::ParseInfoTree* tree = nullptr;  // the net's part of the text

  // The line of a field of the net itself that does not repeat, or the file when it was left out.
  SourceRef Where(std::string_view field) const;
};

// Reads and upgrades a net file and makes the changes of `overrides` (null: none), all of which
// must find their place. Throws as ParseText and Overrides do.
NetSpec LoadNet(const std::string& path, Overrides* overrides = nullptr);

// The layers that `state` keeps (include and exclude rules of Caffe). Each kept layer without a
// phase of its own gets the state's. Throws kConfig for a layer with both kinds of rules.
std::vector<LayerSpec> FilterLayers(const NetSpec& net, const caffe::NetState& state);

}  // namespace trainer
