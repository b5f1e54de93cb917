#pragma once
// Layers of the forms that came before LayerParameter, rewritten.

#include <google/protobuf/text_format.h>

#include <cstdint>
#include <string>
#include <vector>

#include "layers.pb.h"
#include "legacy.pb.h"
#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"
#include "trainer/config/net_spec.h"

namespace trainer {

// A layer of an old form and its place. `tree` may be null.
struct OldLayer {
  caffe::V1LayerParameter proto;
  SourceRef where;
  const google::protobuf::TextFormat::ParseInfoTree* tree = nullptr;
};

// Rewrites layers of the oldest form (`layers { layer { type: "conv" ... } }`) as the form with
// numbered types, and returns all other layers unchanged. Layers of type "padding" vanish: their
// pad goes to the layers that read them. A field that means nothing for its layer's type is dropped
// with a warning. Throws kConfig for an unknown type, or a padding layer that cannot be folded.
std::vector<OldLayer> RewriteOldest(std::vector<OldLayer> layers, Upgrades* upgrades);

// Rewrites a layer with a numbered type as a layer of today. Throws kConfig if it has no type.
caffe::LayerParameter RewriteOld(const OldLayer& layer);

// Warns of scale, mean_file, crop_size and mirror in a data layer's own message, where only the old
// forms have them.
void WarnOfOldTransform(const LayerSpec& layer, Upgrades* upgrades);

}  // namespace trainer
