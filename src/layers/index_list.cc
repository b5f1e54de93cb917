#include "index_list.h"

#include "trainer/base/text.h"
#include "trainer/layers/items.h"

namespace trainer {

void RequireIndices(const LayerSpec& spec, const ConstTensor& indices, int input,
                    const LabelRule& rule, const char* what) {
  const float* values = indices.f32();
  for (int64_t i = 0; i < indices.Count(); ++i) {
    if (rule.Read(values[i]) >= 0) continue;
    try {
      spec.FailWith(ErrorCode::kData, Join("bottom '", spec.proto().bottom(input), "' holds ",
                                           values[i], " at index ", i, "; there are ", rule.classes,
                                           " ", what, ", 0 to ", rule.classes - 1));
    } catch (const Error& error) {
      const int64_t items = indices.shape.Rank() > 0 ? indices.shape[0] : 1;
      throw ItemError(error, input, i / (indices.Count() / items));
    }
  }
}

}  // namespace trainer
