#pragma once
// One layer of a net as the user wrote it, knowing its lines.

#include <google/protobuf/text_format.h>

#include <string>
#include <string_view>

#include "layers.pb.h"
#include "trainer/base/error.h"

namespace trainer {

// A value: copies share the parse tree, which the NetSpec it came from owns and outlives it.
class LayerSpec {
 public:
  // `where` is the layer's own line; `tree` may be null (a layer made by the program).
  LayerSpec(caffe::LayerParameter proto, SourceRef where,
            const google::protobuf::TextFormat::ParseInfoTree* tree = nullptr)
      : proto_(std::move(proto)), where_(std::move(where)), tree_(tree) {}

  const caffe::LayerParameter& proto() const { return proto_; }
  caffe::LayerParameter& mutable_proto() { return proto_; }
  const std::string& name() const { return proto_.name(); }
  const std::string& type() const { return proto_.type(); }

  // The layer's line; or that of a field of the layer itself ("bottom", index 1); or that of a
  // field of one of its messages ("convolution_param", "stride"). A field left out gives the
  // nearest enclosing line. Throws kInternal for a name that the schema does not have.
  const SourceRef& Where() const { return where_; }
  SourceRef Where(std::string_view field, int index = -1) const;
  SourceRef WhereIn(std::string_view param, std::string_view field, int index = -1) const;

  // Throw kConfig: "place: layer 'conv2' (Convolution): message".
  [[noreturn]] void Fail(const std::string& message) const;
  [[noreturn]] void Fail(std::string_view field, const std::string& message, int index = -1) const;
  [[noreturn]] void FailIn(std::string_view param, std::string_view field,
                           const std::string& message, int index = -1) const;
  // The same with another exit code.
  [[noreturn]] void FailWith(ErrorCode code, const std::string& message) const;

 private:
  caffe::LayerParameter proto_;
  SourceRef where_;
  const google::protobuf::TextFormat::ParseInfoTree* tree_;
};

}  // namespace trainer
