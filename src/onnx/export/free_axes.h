#pragma once

#include <string>
#include <vector>

#include "export/layer_export.h"
#include "trainer/config/net_spec.h"
#include "trainer/net/net.h"

namespace trainer {

// The shapes of all values, and which of their axes the batch size changes.
struct FreeAxes {
  IdVector<ValueId, FreeShape> shapes;
  // The name of each axis in the file, e.g. "batch"; "" for an axis of fixed length, and for a free
  // one without a name.
  IdVector<ValueId, std::vector<std::string>> names;
  std::string why_fixed;  // why no other batch size is possible; "" if it is
};

// Compares `net` with a net whose inputs have more items, and in a net with recurrent layers, if
// that is possible, also more steps. If the net cannot be compiled for another batch size,
// or `fixed` is true, all axes are fixed, except those that differ from pass to pass.
FreeAxes FindFreeAxes(const NetSpec& spec, const Net& net, bool fixed);

}  // namespace trainer
