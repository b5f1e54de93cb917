#pragma once
// Layers of the forms that came before LayerParameter, rewritten.

#include <google/protobuf/text_format.h>

#include <vector>

#include "layers.pb.h"
#include "legacy.pb.h"
#include "trainer/base/error.h"

namespace trainer {

// A layer of an old form and its place. `tree` may be null.
struct OldLayer {
  caffe::V1LayerParameter proto;
  SourceRef where;
  const google::protobuf::TextFormat::ParseInfoTree* tree = nullptr;
};

// The oldest form (`layers { layer { type: "conv" ... } }`) as the one with numbered types. Layers
// of type "padding" vanish: their pad goes to the layers that read them. Others are passed on.
// Throws kConfig for an unknown type, or a padding layer that cannot be folded.
std::vector<OldLayer> RewriteOldest(std::vector<OldLayer> layers);

// The form with numbered types as today's. Throws kConfig for a layer without type.
caffe::LayerParameter RewriteOld(const OldLayer& layer);

}  // namespace trainer
