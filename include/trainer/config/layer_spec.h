#pragma once
// One layer of a net as the user wrote it, with the lines of its fields.

#include <google/protobuf/text_format.h>

#include <map>
#include <string>
#include <string_view>

#include "layers.pb.h"
#include "trainer/base/error/error.h"

namespace trainer {

// A value type. Copies share the parse tree; the NetSpec from which the layer came owns the tree
// and outlives it.
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

  // Sets that messages call the blob `blob` of this layer `written`, the name in the user's file,
  // because the program chose the name `blob` itself.
  void SetWrittenName(const std::string& blob, const std::string& written) {
    written_[blob] = written;
  }
  const std::map<std::string, std::string>& written_names() const { return written_; }
  // Sets that messages name `maker` instead of this layer, which the program added after it.
  void SpeakFor(const LayerSpec& maker);

  // Returns "layer 'conv2' (Convolution)" for messages, or the title of the layer that SpeakFor
  // gave.
  std::string Title() const;

  // Returns the layer's own line.
  const SourceRef& Where() const { return where_; }
  // Returns the line of a field of the layer itself ("bottom", index 1), or the layer's line if the
  // field is not given. Throws kInternal for a name that the schema does not have.
  SourceRef Where(std::string_view field, int index = -1) const;
  // Returns the line of a field of one of the layer's messages ("convolution_param", "stride"); if
  // it is not given, the line of the message or of the layer. Throws kInternal as Where does.
  SourceRef WhereIn(std::string_view param, std::string_view field, int index = -1) const;

  // Throws kConfig at the layer's line: "place: layer 'conv2' (Convolution): message".
  [[noreturn]] void Fail(const std::string& message) const;
  // Throws kConfig at the line of a field (see Where): "place: layer 'conv2' (Convolution):
  // message".
  [[noreturn]] void Fail(std::string_view field, const std::string& message, int index = -1) const;
  // Throws kConfig at the line of a field of one of the layer's messages (see WhereIn): "place:
  // layer 'conv2' (Convolution): message".
  [[noreturn]] void FailIn(std::string_view param, std::string_view field,
                           const std::string& message, int index = -1) const;
  // Throws an error with this exit code at the layer's line: "place: layer 'conv2' (Convolution):
  // message".
  [[noreturn]] void FailWith(ErrorCode code, const std::string& message) const;

 private:
  // Throws LayerError with the title. In the message, replaces blob names that the program chose by
  // the names in the user's file.
  [[noreturn]] void Throw(ErrorCode code, const SourceRef& place, const std::string& message) const;

  caffe::LayerParameter proto_;
  SourceRef where_;
  const google::protobuf::TextFormat::ParseInfoTree* tree_;
  std::map<std::string, std::string> written_;
  std::string title_;  // used in messages; if empty, made from its own name and type
};

}  // namespace trainer
