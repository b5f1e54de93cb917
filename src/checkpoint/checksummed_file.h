#pragma once
// A protobuf message in a file that shows its own damage: first the field file_bytes, then the
// message, last the field crc32c over all bytes before it. Both fields have the same numbers in
// NetParameter and SolverState; programs that do not know them skip them. The first tells a cut
// file, the last any flipped bit, and a flipped bit cannot hide both.

#include <google/protobuf/message.h>

#include <optional>
#include <string>

#include "state.pb.h"
#include "trainer/base/file/atomic_file.h"
#include "trainer/checkpoint/model_file.h"

namespace trainer {

// Writes `message`, whose own file_bytes and crc32c must not be set, into an open file and leaves
// the rest (Finish, Place) to the caller. Streams: needs no copy of the message. Throws kConfig
// when the file would exceed 2 GiB - 1, see CheckModelBytes.
FileChecksum WriteChecksummed(const google::protobuf::Message& message, AtomicFile* file);

// Writes net or state in the format that the file's name asks for; the rest is the caller's.
FileChecksum WriteModelTo(caffe::NetParameter& net, AtomicFile* file);
FileChecksum WriteStateTo(caffe::SolverState& state, AtomicFile* file);

// Checks the file, protobuf or HDF5, without parsing it. Returns nothing for a file without seal,
// such as Caffe's. Throws kBadSnapshot for an empty, cut or changed file, kNoInput and the like
// when it cannot be read.
std::optional<FileChecksum> VerifyChecksum(const std::string& path);

// Parses the file, whose seal was checked; throws `unparsable` when that fails, saying that it is
// no `kind` ("file of weights").
void ParseFile(const std::string& path, const std::string& kind, ErrorCode unparsable,
               google::protobuf::Message* message);

// What a file's first fields, or an HDF5 file's groups, say it is. kUnknown for all else.
enum class FileKind { kModel, kState, kUnknown };
FileKind SniffKind(const std::string& path);

}  // namespace trainer
