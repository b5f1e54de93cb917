#pragma once
// Reads protobuf text files and records the line of every field.

#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>

#include <memory>
#include <string>

#include "trainer/base/error/error.h"

namespace trainer {

// A text file's content and the places of the message's fields.
struct ParsedText {
  std::string file;
  std::string content;
  google::protobuf::TextFormat::ParseInfoTree tree;
};

// Reads `path` into `message`. Limits: 4 MiB, 64 levels, no NUL bytes, UTF-8.
// Throws kNoInput (with the absolute path), kNoPermission, or kConfig. A syntax error reads
//   lenet.prototxt:5:12: "Convolution" has no field 'strid'. Did you mean 'stride'?
//     stride of the user's line
//         ^
// for: unknown field, wrong type of value, unknown enum value (listing the names), missing brace,
// a field given twice, a required field missing, a float that is not finite. Several come as an
// ErrorGroup, a line each.
std::unique_ptr<ParsedText> ParseText(const std::string& path, google::protobuf::Message* message);

// Returns the content of `path` without parsing it. Throws kNoInput, kNoPermission, kConfig above
// 4 MiB, or as RefuseOnnx.
std::string ReadTextFile(const std::string& path);

// Throws kData, with the command that converts the model, if the file exists and its name ends in
// .onnx.
void RefuseOnnx(const std::string& path);

// Parses text from memory as ParseText does; messages use `file` as its name.
std::unique_ptr<ParsedText> ParseTextString(const std::string& file, std::string content,
                                            google::protobuf::Message* message);

// Returns the path as given if it exists, else relative to the folder of the file that mentions it.
// If neither exists, returns the path as given.
std::string ResolvePath(const std::string& path, const std::string& mentioned_in);

// Returns the absolute paths that ResolvePath tries, as the end of a message, with the existing
// file whose path is most similar to `path`: "/a/net.prototxt and /a/b/net.prototxt. Did you mean
// 'b/net2.prototxt'?"
std::string PathsTried(const std::string& path, const std::string& mentioned_in);

}  // namespace trainer
