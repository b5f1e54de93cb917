#include "index_list.h"

#include "trainer/base/text.h"

namespace trainer {

void RequireIndices(const LayerSpec& spec, const ConstTensor& indices, int input,
                    const LabelRule& rule, const char* what) {
  const float* values = indices.f32();
  for (int64_t i = 0; i < indices.Count(); ++i) {
    if (rule.Read(values[i]) >= 0) continue;
    spec.FailWith(ErrorCode::kData,
                  Join("bottom '", spec.proto().bottom(input), "' holds ", values[i], " at place ",
                       i, "; there are ", rule.classes, " ", what, ", 0 to ", rule.classes - 1));
  }
}

}  // namespace trainer
