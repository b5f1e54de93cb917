#pragma once

#include "shared/class_labels.h"

namespace trainer {

// Reports the first of the indices, input number `input`, that is no index below rule.classes to
// run.input_error().
void ReportBadIndices(const RunContext& run, int input, const LabelRule& rule);

// Throws kData (RecordError) for `index`, element `at` of those, whose shape is `indices`; `what`
// names what they choose from ("items").
[[noreturn]] void ThrowBadIndex(const LayerSpec& spec, int input, const Shape& indices,
                                const LabelRule& rule, const char* what, int64_t at, float index);

}  // namespace trainer
