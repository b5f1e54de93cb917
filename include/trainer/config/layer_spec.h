#pragma once
// One layer of a net as the user wrote it, knowing its lines.

#include <google/protobuf/text_format.h>

#include <map>
#include <string>
#include <string_view>

#include "layers.pb.h"
#include "trainer/base/error/error.h"

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

  // Messages name the blob `blob` of this layer, which has a name of the program's own, as
  // `written`, the name in the user's file.
  void SetWrittenName(const std::string& blob, const std::string& written) {
    written_[blob] = written;
  }
  const std::map<std::string, std::string>& written_names() const { return written_; }
  // Messages name `maker` in the place of this layer, which the program added after it.
  void SpeakFor(const LayerSpec& maker);

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
  std::string Title() const;
  [[noreturn]] void Throw(ErrorCode code, const SourceRef& place, const std::string& message) const;

  caffe::LayerParameter proto_;
  SourceRef where_;
  const google::protobuf::TextFormat::ParseInfoTree* tree_;
  std::map<std::string, std::string> written_;
  std::string title_;  // in messages; empty: of its own name and type
};

}  // namespace trainer
