#pragma once
// A net as read from a prototxt, and the rules that select the layers of one phase.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "net.pb.h"
#include "trainer/config/layer_spec.h"
#include "trainer/config/overrides.h"
#include "trainer/config/text/prototxt.h"

namespace trainer {

// Reports on rewritten old forms. Each is one sentence that begins with the file.
struct Upgrades {
  std::vector<std::string> done;
  std::vector<std::string> warnings;  // reports on ignored fields

  bool empty() const { return done.empty() && warnings.empty(); }
  void Append(const Upgrades& more);
};

// A whole net file (or a net written inside a solver). It owns the data to which its layers' places
// refer, so keep it while any LayerSpec of it exists. It can be moved.
struct NetSpec {
  caffe::NetParameter proto;      // everything except the layers
  std::vector<LayerSpec> layers;  // in file order, every phase
  std::string file;
  Upgrades upgrades;                 // the changes that were made while reading
  std::unique_ptr<ParsedText> text;  // null when the net came with a solver, which owns it
  const google::protobuf::TextFormat::ParseInfoTree* tree = nullptr;  // the net's part of the text

  // Returns the line of a field of the net itself that does not repeat, or the file if the field is
  // not given. Throws kInternal for any other name.
  SourceRef Where(std::string_view field) const;
};

// Reads and upgrades a net file and makes the changes of `overrides` (null: none); each change must
// find its field. Throws as ParseText and Overrides do.
NetSpec LoadNet(const std::string& path, Overrides* overrides = nullptr);

// Returns the layers that `state` keeps (include and exclude rules of Caffe). A kept layer without
// a phase of its own gets the state's. Throws kConfig for a layer with both kinds of rules.
std::vector<LayerSpec> FilterLayers(const NetSpec& net, const caffe::NetState& state);

}  // namespace trainer
