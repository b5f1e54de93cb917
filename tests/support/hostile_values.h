#pragma once
// Extreme and invalid values for fields of a prototxt, by the type of the field.

#include <google/protobuf/descriptor.h>

#include <string>
#include <vector>

namespace trainer {

// Returns the values as prototxt text, or none for messages.
inline std::vector<std::string> HostileValues(const google::protobuf::FieldDescriptor* field) {
  using google::protobuf::FieldDescriptor;
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_UINT32:
      return {"0", "1", "2", "3", "7", "65536", "2147483647", "2147483648", "4294967295"};
    case FieldDescriptor::CPPTYPE_INT32:
    case FieldDescriptor::CPPTYPE_INT64:
      return {"0", "1", "2", "3", "-1", "-2", "-9", "1000000", "2147483647", "-2147483648"};
    case FieldDescriptor::CPPTYPE_FLOAT:
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return {"0", "1", "-1", "0.5", "1e30", "-1e30", "1e-40", "inf", "-inf", "nan"};
    case FieldDescriptor::CPPTYPE_BOOL:
      return {"true", "false"};
    case FieldDescriptor::CPPTYPE_STRING:
      return {"''", "'no such thing'", "'/'"};
    case FieldDescriptor::CPPTYPE_ENUM: {
      std::vector<std::string> names;
      for (int i = 0; i < field->enum_type()->value_count(); ++i) {
        names.push_back(field->enum_type()->value(i)->name());
      }
      return names;
    }
    default:
      return {};
  }
}

}  // namespace trainer
