#include "trainer/config/storage.h"

#include <glog/logging.h>

#include <algorithm>

#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using google::protobuf::Message;

constexpr const char* kNetFields[] = {"default_forward_type", "default_backward_type",
                                      "default_forward_math", "default_backward_math"};
constexpr const char* kLayerFields[] = {"forward_type", "backward_type", "forward_math",
                                        "backward_math"};

bool IsMath(const std::string& field) { return field.ends_with("_math"); }
bool IsBackward(const std::string& field) { return field.find("backward") != std::string::npos; }

// Returns the value of an enum field by its name, its default if it is not given.
caffe::Type Value(const Message& message, const char* field) {
  const auto* known = message.GetDescriptor()->FindFieldByName(field);
  return static_cast<caffe::Type>(message.GetReflection()->GetEnumValue(message, known));
}
// Returns whether a file gives the field.
bool Given(const Message& message, const char* field) {
  const auto* known = message.GetDescriptor()->FindFieldByName(field);
  return message.GetReflection()->HasField(message, known);
}

// Logs one line per kind of remark, with the first place that causes it.
class Remarks {
 public:
  // Notes `value` of `field`, in a layer or net whose outputs are stored as `storage`, if it has no
  // effect.
  void Look(const SourceRef& where, const std::string& field, caffe::Type value,
            caffe::Type storage) {
    if (IsMath(field) && value != caffe::FLOAT) {
      Add(math_, where, Join(field, " has no effect: sums are FLOAT"));
    }
    if (!IsMath(field) && IsBackward(field) && value != storage) {
      Add(backward_, where,
          Join(field, " has no effect: gradients have the type of the values they belong to, ",
               caffe::Type_Name(storage)));
    }
  }

 private:
  // Logs the remark unless its kind was logged before.
  static void Add(bool& said, const SourceRef& where, const std::string& text) {
    if (said) return;
    said = true;
    LOG(INFO) << EscapeControl(Join(where.ToString(), ": ", text));
  }

  bool math_ = false, backward_ = false;
};

}  // namespace

std::string StorageFault(const std::string& field, caffe::Type type) {
  if (type == caffe::FLOAT || type == caffe::FLOAT16 || type == caffe::BFLOAT16) return "";
  const std::string is = Join(field, " is ", caffe::Type_Name(type), "; ");
  if (IsMath(field)) return is + "all sums are FLOAT in this program: remove the field";
  return is + "it must be FLOAT, FLOAT16 or BFLOAT16";
}

caffe::Type StorageOf(const NetSpec& net, const LayerSpec& layer) {
  const bool own = layer.proto().has_forward_type();
  const caffe::Type type = own ? layer.proto().forward_type() : net.proto.default_forward_type();
  const std::string fault = StorageFault(own ? "forward_type" : "default_forward_type", type);
  if (fault.empty()) return type;
  if (own) layer.Fail("forward_type", fault);
  throw Error(ErrorCode::kConfig, net.Where("default_forward_type"), fault);
}

SourceRef StoragePlace(const NetSpec& net, const LayerSpec& layer) {
  return layer.proto().has_forward_type() ? layer.Where("forward_type")
                                          : net.Where("default_forward_type");
}

void CheckStorage(const NetSpec& net) {
  Remarks remarks;
  for (const char* field : kNetFields) {
    if (!Given(net.proto, field)) continue;
    const caffe::Type value = Value(net.proto, field);
    const std::string fault = StorageFault(field, value);
    if (!fault.empty()) throw Error(ErrorCode::kConfig, net.Where(field), fault);
    remarks.Look(net.Where(field), field, value, net.proto.default_forward_type());
  }
  for (const LayerSpec& layer : net.layers) {
    for (const char* field : kLayerFields) {
      if (!Given(layer.proto(), field)) continue;
      const caffe::Type value = Value(layer.proto(), field);
      const std::string fault = StorageFault(field, value);
      if (!fault.empty()) layer.Fail(field, fault);
      remarks.Look(layer.Where(field), field, value, StorageOf(net, layer));
    }
  }
  if (net.proto.global_grad_scale() == 1 && !net.proto.global_grad_scale_adaptive()) return;
  const auto takes_scale = [](const LayerSpec& layer) {
    return layer.proto().forward_type() == caffe::FLOAT16;
  };
  if (net.proto.default_forward_type() == caffe::FLOAT16) return;
  if (std::ranges::any_of(net.layers, takes_scale)) return;
  const char* field =
      net.proto.has_global_grad_scale() ? "global_grad_scale" : "global_grad_scale_adaptive";
  LOG(INFO) << net.Where(field).ToString() << ": " << field
            << " has no effect: BFLOAT16 and FLOAT represent small gradients without scaling";
}

}  // namespace trainer
