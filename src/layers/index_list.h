#pragma once

#include "labels.h"

namespace trainer {

// Throws kData for the first of `indices`, which lie on the host and are input number `input`, that
// is no index below rule.classes; `what` names what they choose from ("items").
void RequireIndices(const LayerSpec& spec, const ConstTensor& indices, int input,
                    const LabelRule& rule, const char* what);

}  // namespace trainer
