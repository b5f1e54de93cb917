#pragma once

#include "shared/class_labels.h"

namespace trainer {

// Reports the first element of input `input` that is not an index below rule.classes to
// run.input_error().
void ReportBadIndices(const RunContext& run, int input, const LabelRule& rule);

// Throws kData (RecordError) for `index`, element `at` of an input of shape `indices`; `what` names
// the things that are indexed ("items").
[[noreturn]] void ThrowBadIndex(const LayerSpec& spec, int input, const Shape& indices,
                                const LabelRule& rule, const char* what, int64_t at, float index);

}  // namespace trainer
