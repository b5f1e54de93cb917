#include "shared/blob_shapes.h"

#include "trainer/base/text/text.h"

namespace trainer {

Shape ShapeOf(const LayerSpec& spec, std::string_view param, std::string_view field,
              const caffe::BlobShape& shape, int index) {
  for (const int64_t length : shape.dim()) {
    if (length < 1) {
      spec.FailIn(param, field, Join("dim is ", length, "; it must be at least 1"), index);
    }
  }
  if (shape.dim_size() > Shape::kMaxAxes) {
    spec.FailIn(
        param, field,
        Join("a shape of ", shape.dim_size(), " axes; at most ", Shape::kMaxAxes, " are allowed"),
        index);
  }
  try {
    return Shape(std::span(shape.dim().data(), static_cast<size_t>(shape.dim_size())));
  } catch (const Error& error) {
    spec.FailIn(param, field, error.what(), index);
  }
}

void CheckPerTop(const LayerSpec& spec, std::string_view param, std::string_view field, int count) {
  const int tops = spec.proto().top_size();
  if (count == 1 || count == tops) return;
  spec.FailIn(param, field,
              Join(field, " is given ", count, " times for ", tops, tops == 1 ? " top" : " tops",
                   "; give one, or one per top"),
              0);
}

}  // namespace trainer
