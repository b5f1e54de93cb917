#pragma once
// A protobuf message in a file that shows its own damage: first the field file_bytes, then the
// message, last the field crc32c over all bytes before it. Both fields have the same numbers in
// NetParameter and SolverState; programs that do not know them skip them. The first tells a cut
// file, the last any flipped bit, and a flipped bit cannot hide both.

#include <google/protobuf/message.h>

#include <optional>
#include <string>

#include "trainer/base/atomic_file.h"
#include "trainer/checkpoint/model_file.h"

namespace trainer {

// Writes `message`, whose own file_bytes and crc32c must not be set, into an open file and leaves
// the rest (Finish, Place) to the caller. Streams: needs no copy of the message. Throws kConfig
// when the file would exceed 2 GiB - 1, see CheckModelBytes.
Seal WriteSealed(const google::protobuf::Message& message, AtomicFile* file);

// Checks the file without parsing it. Returns nothing for a file without seal, such as Caffe's.
// Throws kBadSnapshot for an empty, cut or changed file, kNoInput and the like when it cannot be
// read, kUnavailable for an HDF5 file.
std::optional<Seal> CheckSeal(const std::string& path);

// Parses the file, whose seal was checked; throws `unparsable` when that fails, saying that it is
// no `kind` ("file of weights").
void ParseFile(const std::string& path, const std::string& kind, ErrorCode unparsable,
               google::protobuf::Message* message);

// What a file's first fields say it is. kUnknown for all else.
enum class FileKind { kModel, kState, kUnknown };
FileKind SniffKind(const std::string& path);

}  // namespace trainer
