#include "checks/finite_values.h"

#include <google/protobuf/descriptor.h>

#include <cmath>
#include <vector>

#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using FiniteTree = google::protobuf::TextFormat::ParseInfoTree;

struct Fault {
  std::string text;  // "" for none
  int line = 0, column = 0;
};

// Returns element `index` of a field, or the field itself if `index` is -1; 0 for a field of
// another type than float or double.
double FloatOf(const Message& message, const FieldDescriptor* field, int index) {
  const auto& reflection = *message.GetReflection();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_FLOAT:
      return index < 0 ? reflection.GetFloat(message, field)
                       : reflection.GetRepeatedFloat(message, field, index);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return index < 0 ? reflection.GetDouble(message, field)
                       : reflection.GetRepeatedDouble(message, field, index);
    default:
      return 0;
  }
}

// Returns the first float or double, in the order of the schema and including inner messages, that
// is not finite. The place needs a `tree`.
Fault FindFault(const Message& message, const FiniteTree* tree) {
  const auto& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const bool repeated = field->is_repeated();
    const int count = repeated ? reflection.FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      const int index = repeated ? i : -1;
      if (field->message_type() != nullptr) {
        const Message& inner = repeated ? reflection.GetRepeatedMessage(message, field, i)
                                        : reflection.GetMessage(message, field);
        const Fault fault =
            FindFault(inner, tree == nullptr ? nullptr : tree->GetTreeForNested(field, index));
        if (!fault.text.empty()) return fault;
        continue;
      }
      const double value = FloatOf(message, field, index);
      if (std::isfinite(value)) continue;
      Fault fault{Join(field->name(), " is ", value, "; it must be a finite number")};
      if (tree == nullptr) return fault;
      const auto at = tree->GetLocation(field, index);
      fault.line = at.line + 1;
      fault.column = at.line < 0 ? 0 : at.column + 1;
      return fault;
    }
  }
  return {};
}

}  // namespace

void RequireFinite(const Message& message, const FiniteTree* tree, const std::string& file) {
  const Fault fault = FindFault(message, tree);
  if (fault.text.empty()) return;
  throw Error(ErrorCode::kConfig, {file, fault.line, fault.column}, fault.text);
}

std::string NotFinite(const Message& message) { return FindFault(message, nullptr).text; }

}  // namespace trainer
