#pragma once
// Checks of inputs and fields that many layers share. All throw kConfig at the user's line.

#include <string>
#include <string_view>

#include "trainer/layers/layer.h"

namespace trainer {

// Formats a shape for a message: "(64, 20, 12, 12)".
std::string Dims(const Shape& shape);

// Returns `axis` of `shape` counted from the front; refuses an axis that is out of range.
int AxisIn(const LayerSpec& spec, std::string_view param, std::string_view field, int axis,
           const Shape& shape);

// Refuses inputs that are not stored as f32, for layers that support only f32.
void RequireF32(const SetupContext& ctx, const LayerSpec& spec);

// Refuses an input whose number of axes is not within [min, max]; `wish` describes the expected
// input, e.g. "an image (N, C, H, W)".
void RequireRank(const SetupContext& ctx, const LayerSpec& spec, int input, int min, int max,
                 std::string_view wish);

// Refuses inputs whose shapes differ from input 0's.
void RequireEqualShapes(const SetupContext& ctx, const LayerSpec& spec);

// Refuses inputs whose shapes differ from input 0's, except that (N), (N, 1) and (N, 1, 1, 1), or
// (N, C) and (N, C, 1, 1), count as equal: a net may compare a label (N) with a score (N, 1).
void RequireEqualItems(const SetupContext& ctx, const LayerSpec& spec);

}  // namespace trainer
