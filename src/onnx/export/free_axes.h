#pragma once

#include <string>
#include <vector>

#include "export/layer_export.h"
#include "trainer/config/net_spec.h"
#include "trainer/net/net.h"

namespace trainer {

// Holds the shapes of all values, and says which of their axes change with the batch size.
struct FreeAxes {
  IdVector<ValueId, FreeShape> shapes;
  // Names each axis in the file, e.g. "batch". The name is "" for an axis of fixed length, and for
  // a free axis that has no name.
  IdVector<ValueId, std::vector<std::string>> names;
  std::string why_fixed;  // why no other batch size is possible; "" if one is possible
};

// Finds the free axes by comparing `net` with a net whose inputs have more items. In a net with
// recurrent layers, the other net also has more steps, if that is possible. If the net cannot be
// compiled for another batch size, or `fixed` is true, then only the axes that differ from pass to
// pass are free.
FreeAxes FindFreeAxes(const NetSpec& spec, const Net& net, bool fixed);

}  // namespace trainer
