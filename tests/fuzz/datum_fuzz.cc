// Reads a database record, and crops and converts it as a Data layer does.

#include <string_view>
#include <vector>

#include "fuzz/fuzz_target.h"
#include "trainer/input/transform.h"
#include "trainer/storage/datum.h"

namespace {

trainer::Transform SmallTransform() {
  caffe::LayerParameter proto;
  proto.set_name("data");
  proto.set_type("Data");
  proto.mutable_transform_param()->set_crop_size(2);
  proto.mutable_transform_param()->set_mirror(true);
  proto.mutable_transform_param()->add_mean_value(3);
  return trainer::Transform(trainer::LayerSpec(proto, {"net.prototxt"}), caffe::TRAIN, {});
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return trainer::ExpectRefusalOrSuccess([&] {
    static const trainer::Transform transform = SmallTransform();
    static trainer::DatumParser parser;
    const trainer::DatumView& datum =
        parser.Parse("db", "key", {reinterpret_cast<const char*>(data), size});
    std::vector<float> out(static_cast<size_t>(transform.OutShape(datum, "'key'").Count()));
    transform.ToFloats(datum, 0, out.data());
  });
}
