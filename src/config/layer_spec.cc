#include "trainer/config/layer_spec.h"

#include <google/protobuf/descriptor.h>

#include <algorithm>

#include "legacy.pb.h"
#include "trainer/base/text/text.h"
#include "trainer/config/layer_error.h"

namespace trainer {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using LayerTree = google::protobuf::TextFormat::ParseInfoTree;

// Returns the field of a message, and throws kInternal if it does not exist.
const FieldDescriptor& FieldOf(const Descriptor& message, std::string_view name) {
  const FieldDescriptor* field = message.FindFieldByName(std::string(name));
  if (field == nullptr) {
    throw Error(ErrorCode::kInternal, Join(message.name(), " has no field '", name, "'"));
  }
  return *field;
}

// Returns the field under which the tree of an old layer keeps `field` of today's layer.
const FieldDescriptor* OldField(const FieldDescriptor& field) {
  if (field.containing_type() != caffe::LayerParameter::descriptor()) return nullptr;
  const std::string& name = field.name();
  return caffe::V1LayerParameter::descriptor()->FindFieldByName(name);
}

// Returns the place of a field, of its element `index` if it repeats, counted from 0. Returns line
// -1 if the file does not give the field.
google::protobuf::TextFormat::ParseLocation Locate(const LayerTree& tree,
                                                   const FieldDescriptor& field, int index) {
  const auto at = [&](const FieldDescriptor& f) {
    return tree.GetLocation(&f, f.is_repeated() ? std::max(index, 0) : -1);
  };
  const auto found = at(field);
  const FieldDescriptor* old = OldField(field);
  return found.line < 0 && old != nullptr ? at(*old) : found;
}

// Returns the tree of a message field, of the first element if it repeats; null if the file does
// not give it.
const LayerTree* Inner(const LayerTree& tree, const FieldDescriptor& field) {
  const auto in = [&](const FieldDescriptor& f) {
    return tree.GetTreeForNested(&f, f.is_repeated() ? 0 : -1);
  };
  const LayerTree* found = in(field);
  const FieldDescriptor* old = OldField(field);
  return found == nullptr && old != nullptr && old->message_type() == field.message_type()
             ? in(*old)
             : found;
}

}  // namespace

SourceRef LayerSpec::Where(std::string_view field, int index) const {
  const FieldDescriptor& known = FieldOf(*caffe::LayerParameter::descriptor(), field);
  if (tree_ == nullptr) return where_;
  const auto at = Locate(*tree_, known, index);
  return at.line < 0 ? where_ : SourceRef{where_.file, at.line + 1, at.column + 1};
}

SourceRef LayerSpec::WhereIn(std::string_view param, std::string_view field, int index) const {
  const FieldDescriptor& outer = FieldOf(*caffe::LayerParameter::descriptor(), param);
  if (outer.message_type() == nullptr) {
    throw Error(ErrorCode::kInternal, Join("LayerParameter's '", param, "' has no fields"));
  }
  const FieldDescriptor& inner = FieldOf(*outer.message_type(), field);
  if (tree_ == nullptr) return where_;
  const LayerTree* nested = Inner(*tree_, outer);
  if (nested == nullptr) return Where(param);
  const auto at = Locate(*nested, inner, index);
  return at.line < 0 ? Where(param) : SourceRef{where_.file, at.line + 1, at.column + 1};
}

std::string LayerSpec::Title() const {
  return title_.empty() ? Join("layer '", name(), "' (", type(), ")") : title_;
}

void LayerSpec::SpeakFor(const LayerSpec& maker) {
  title_ = maker.Title();
  written_[name()] = maker.name();
}

void LayerSpec::Throw(ErrorCode code, const SourceRef& place, const std::string& message) const {
  std::string text = message;
  // From the last name to the first, since "x_split_1" is the beginning of "x_split_10".
  for (auto name = written_.rbegin(); name != written_.rend(); ++name) {
    for (size_t at = text.find(name->first); at != std::string::npos;
         at = text.find(name->first, at + name->second.size())) {
      text.replace(at, name->first.size(), name->second);
    }
  }
  throw LayerError(code, place, Join(Title(), ": ", text));
}

void LayerSpec::Fail(const std::string& message) const {
  Throw(ErrorCode::kConfig, where_, message);
}

void LayerSpec::Fail(std::string_view field, const std::string& message, int index) const {
  Throw(ErrorCode::kConfig, Where(field, index), message);
}

void LayerSpec::FailIn(std::string_view param, std::string_view field, const std::string& message,
                       int index) const {
  Throw(ErrorCode::kConfig, WhereIn(param, field, index), message);
}

void LayerSpec::FailWith(ErrorCode code, const std::string& message) const {
  Throw(code, where_, message);
}

}  // namespace trainer
