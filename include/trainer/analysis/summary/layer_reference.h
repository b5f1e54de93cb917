#pragma once
// The reference of layer types, made from their documentation and the schema.

#include <string>

#include "trainer/base/text/json.h"

namespace trainer {

// Returns one line per layer type, with the first sentence of its documentation.
std::string LayerTypesText();

// Returns the explanation of a layer type (with an example whose shapes are planned), or the fields
// of a message. Throws kUsage, naming the nearest type, for any other name.
std::string LayerReference(const std::string& name);

// Returns all layer types, and all messages that a net can contain, for editors and other programs.
Json LayersJson();

}  // namespace trainer
