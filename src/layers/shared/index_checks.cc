#include "shared/index_checks.h"

#include "trainer/backend/loops/map.h"
#include "trainer/base/text/text.h"
#include "trainer/layers/record_error.h"

namespace trainer {
namespace {

// Reports element i if it is not an index below rule.classes.
struct BadIndex {
  const float* index;
  LabelRule rule;
  InputErrorFlag fault;
  HD void operator()(int64_t i) const {
    if (rule.Read(index[i]) < 0) fault.Report(i, index[i]);
  }
};

}  // namespace

void ReportBadIndices(const RunContext& run, int input, const LabelRule& rule) {
  const ConstTensor& indices = run.Input(input);
  ForEach(run.device(), indices.Count(), BadIndex{indices.f32(), rule, run.input_error()});
}

void ThrowBadIndex(const LayerSpec& spec, int input, const Shape& indices, const LabelRule& rule,
                   const char* what, int64_t at, float index) {
  try {
    spec.FailWith(ErrorCode::kData, Join("bottom '", spec.proto().bottom(input), "' has the value ",
                                         index, " at index ", at, "; there are ", rule.classes, " ",
                                         what, ", 0 to ", rule.classes - 1));
  } catch (const Error& error) {
    const int64_t items = indices.Rank() > 0 ? indices[0] : 1;
    throw RecordError(error, input, at / (indices.Count() / items));
  }
}

}  // namespace trainer
